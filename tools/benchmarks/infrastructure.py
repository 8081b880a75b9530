# SPDX-License-Identifier: Apache-2.0
"""The database and the broker that a benchmark runs on: its own, or given ones."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from tests.fixtures.cloud import Cloud, merged
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.rabbitmq import RabbitMQ
from tools.benchmarks import machine

Settings = Mapping[str, Mapping[str, str]]

# The shipped defaults, in the place of the short intervals that the fixtures set for the sake of quick tests.
DEFAULTS = {
    "DEFAULT": {"report_interval": "10", "service_down_time": "60", "graceful_shutdown_timeout": "10"},
    "conductor": {"lease": "30", "sweep_interval": "5", "scheduler_timeout": "15", "compute_down_patience": "300"},
    "scheduler": {"reap_interval": "10", "grant_lifetime": "120", "liveness_interval": "2"},
    "compute": {"conductor_timeout": "30", "inventory_interval": "60"},
}


@dataclass
class Infrastructure:
    """database and bus are URLs; sessions are those of the servers that were started for this."""

    mariadb: MariaDB | None
    rabbitmq: RabbitMQ | None
    given_database: str | None
    given_bus: str | None

    def new_database(self) -> str:
        """Return the URL of a database: an empty one, or the given one."""
        if self.mariadb is None:
            return self.given_database or ""
        return self.mariadb.url(self.mariadb.create_database())

    def new_bus(self) -> str:
        """Return the URL of a bus of one's own, or of the given one."""
        return self.rabbitmq.vhost_url() if self.rabbitmq else self.given_bus or ""

    def sessions(self) -> dict[str, list[int]]:
        """Return the sessions of the servers by name, for machine.cpu_seconds."""
        found: dict[str, list[int]] = {}
        if self.mariadb and self.mariadb.pid:
            found["mariadb"] = [self.mariadb.pid]
        if self.rabbitmq and self.rabbitmq.pid:
            found["rabbitmq"] = [os.getsid(self.rabbitmq.pid)]
        return found


@contextlib.contextmanager
def running(database: str | None, bus: str | None) -> Iterator[Infrastructure]:
    """Start a MariaDB and a RabbitMQ, as far as none are given, and remove them at the end."""
    with contextlib.ExitStack() as stack:
        mariadb = rabbitmq = None
        if database is None:
            mariadb = MariaDB(durable=True)
            stack.callback(mariadb.remove)
            mariadb.start()
        if bus is None:
            rabbitmq = RabbitMQ()
            stack.callback(rabbitmq.remove)
            rabbitmq.start()
        yield Infrastructure(mariadb, rabbitmq, database, bus)


@contextlib.contextmanager
def cloud(infrastructure: Infrastructure, settings: Settings) -> Iterator[Cloud]:
    """Make a cloud with the shipped defaults under the settings; what was started of it is stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="nova-lite-bench-") as directory:
        made = Cloud(
            Path(directory), infrastructure.new_database(), infrastructure.new_bus(), merged(DEFAULTS, settings)
        )
        try:
            yield made
        finally:
            made.stop()


class Usage:
    """CPU seconds by program and SQL statements, since it was made or last asked."""

    def __init__(self, infrastructure: Infrastructure, cloud_: Cloud) -> None:
        self._sessions = infrastructure.sessions()
        for process in cloud_.processes:
            self._sessions.setdefault(process.name.rpartition("-")[0], []).append(process.process.pid)
        self._engine = sa.create_engine(cloud_.database) if cloud_.database.startswith("mysql") else None
        self._last = self._read()

    def since(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return what was used since the last time: CPU seconds by program, and statements by kind."""
        before, self._last = self._last, self._read()
        cpu, statements = (
            {name: value - old[name] for name, value in new.items()}
            for old, new in zip(before, self._last, strict=True)
        )
        return cpu, statements

    def _read(self) -> tuple[dict[str, float], dict[str, float]]:
        cpu = machine.cpu_seconds(self._sessions)
        cpu["whole machine"] = machine.busy_seconds()
        return cpu, self._statements()

    def _statements(self) -> dict[str, float]:
        if self._engine is None:
            return {}
        names = {"Questions": "statements", "Com_commit": "commits", "Com_rollback": "rollbacks"}
        with self._engine.connect() as conn:
            rows = conn.execute(sa.text("SHOW GLOBAL STATUS")).all()
        return {names[row[0]]: float(row[1]) for row in rows if row[0] in names}

# SPDX-License-Identifier: Apache-2.0
"""What processes are made of: services that start and stop, periodic tasks, heartbeats, workers and signals.

A ``Service`` is the same object in a process of its own and in nova-lite-all-in-one. ``run`` makes daemons of them:
cotyledon keeps the worker processes, restarts one that dies, and turns SIGTERM into a graceful stop.
"""

from __future__ import annotations

import abc
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import ClassVar, NoReturn

import cotyledon
import cotyledon.types
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log

from nova_lite import exception, metrics, rpc
from nova_lite.db import migration, registry
from nova_lite.db.session import Database

LOG = log.getLogger(__name__)


class Service(abc.ABC):
    """Something that runs until it is stopped. ``start`` returns once it works, ``stop`` once it has finished."""

    name: ClassVar[str]

    @abc.abstractmethod
    def start(self) -> None: ...

    @abc.abstractmethod
    def stop(self) -> None: ...


class Periodic:
    """Runs a function again and again, with a little jitter so that many processes do not act in step.

    An error is logged and the next round comes all the same: a periodic task must outlive the outage that it meets.
    """

    def __init__(self, name: str, interval: float, function: Callable[[], None]) -> None:
        self._name = name
        self._interval = interval
        self._function = function
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._interval * random.uniform(0.9, 1.0)):
            try:
                self._function()
            except exception.NovaLiteError as error:
                LOG.warning("periodic task failed name=%s reason=%s", self._name, error)
            except rpc.Error as error:
                LOG.warning("periodic task unanswered name=%s reason=%s", self._name, error)
            except Exception:  # noqa: BLE001 - whatever it was, the next round may do better
                LOG.exception("periodic task failed name=%s", self._name)


class Heartbeat:
    """Registers a control service and says that it is alive, by the database's clock."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database, binary: str) -> None:
        self._db = db
        self._binary = binary
        self._host = conf.host
        self._register()
        self._periodic = Periodic("heartbeat", conf.report_interval, self._beat)

    def stop(self) -> None:
        self._periodic.stop()

    def _register(self) -> None:
        try:
            self._db.write(lambda conn: registry.register_service(conn, self._binary, self._host, self._host))
        except db_exception.DBDuplicateEntry:  # another process of this host was first
            self._beat()

    def _beat(self) -> None:
        if not self._db.write(lambda conn: registry.heartbeat(conn, self._binary, [self._host])):
            self._register()


class _Worker(cotyledon.Service):
    """A service in a process of its own."""

    def __init__(self, worker_id: cotyledon.types.WorkerId, conf: cfg.ConfigOpts, make: Callable[[], Service]) -> None:
        super().__init__(worker_id)
        self._conf = conf
        self._make = make
        self._stopping = threading.Event()

    def run(self) -> None:
        service = self._make()
        metrics.serve(self._conf, self.worker_id)
        service.start()
        LOG.info("started service=%s", service.name)
        self._stopping.wait()
        service.stop()
        rpc.stop()
        LOG.info("stopped service=%s", service.name)

    def terminate(self) -> None:
        self._stopping.set()


def check(conf: cfg.ConfigOpts, needs_database: bool = True) -> None:
    """Make sure that database and bus can be reached before anything starts.

    :raises DatabaseUnavailable: the database cannot be reached, or its schema is not current.
    :raises BusUnavailable: the broker cannot be reached, or refuses us.
    """
    if needs_database:
        db = Database(conf)
        db.check()
        migration.check(db)
        db.close()
    rpc.check(conf)


def run(conf: cfg.ConfigOpts, make: Callable[[], Service], workers: int = 1, needs_database: bool = True) -> None:
    """Run a service in worker processes until a signal ends them; exits with one line if it cannot start."""
    try:
        check(conf, needs_database)
    except exception.NovaLiteError as error:
        fail(conf, error)
    manager = cotyledon.ServiceManager(graceful_shutdown_timeout=conf.graceful_shutdown_timeout)
    manager.add(_Worker, workers=workers, args=(conf, make))
    manager.run()


def run_alone(conf: cfg.ConfigOpts, services: Sequence[Service], needs_database: bool = True) -> None:
    """Run services in this very process until SIGTERM or SIGINT; exits with one line if one cannot start.

    For what must be one process: a compute, whose claim locks are its own, and a cloud in one process.
    """
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    started: list[Service] = []
    try:
        check(conf, needs_database)
        metrics.serve(conf)
        for each in services:
            each.start()
            started.append(each)
            LOG.info("started service=%s", each.name)
    except (exception.NovaLiteError, OSError) as error:
        for each in reversed(started):
            each.stop()
        fail(conf, error)
    stopping.wait()
    _end_anyway(conf.graceful_shutdown_timeout)
    # In reverse: what takes requests in stops before what they need.
    for each in reversed(started):
        each.stop()
        LOG.info("stopped service=%s", each.name)
    rpc.stop()


def _end_anyway(seconds: float) -> None:
    """End the process after so many seconds, should stopping gracefully take longer (as cotyledon does for workers)."""

    def end() -> None:
        LOG.error("not everything stopped in time seconds=%d", seconds)
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def fail(conf: cfg.ConfigOpts, error: Exception) -> NoReturn:
    """End the process with one line on standard error, and status 1."""
    print(f"{conf.prog}: error: {error}", file=sys.stderr)
    sys.exit(1)

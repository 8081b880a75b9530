# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage audit asks the computes of a cloud on RabbitMQ and MariaDB for their domains.

Every domain must have its server and every server its domain. Nobody but a person decides about guests, so --fix
mends what is wrong in the books, and nothing on a host.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db.models import allocations, grants, instances, operations, quota_usages
from tests.fixtures import faults
from tests.fixtures.cloud import Cloud, Process, wait_for
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.rabbitmq import RabbitMQ

HOSTS = ("left", "right")
STRAY = str(uuid.uuid4())
BOOKS = (allocations, grants, instances, operations, quota_usages)


class Audited:
    """A cloud of two computes with a host each, and a server on either host; domains are files in its directory."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.computes: dict[str, Process] = {}
        self.servers: dict[str, str] = {}

    def start(self) -> None:
        for host in HOSTS:
            config = self.cloud.configure(host, {"DEFAULT": {"host": host}, "fake": {"hosts": host}})
            self.computes[host] = self.cloud.start("compute", config)
        self.cloud.start_all(schedulers=1, conductors=1, computes=0)
        for compute in self.computes.values():
            compute.wait_until_started()
        client = self.cloud.client()
        ids = client.boot_at_once(len(HOSTS), client.flavor(), client.group("anti-affinity"))
        self.servers = {server["OS-EXT-SRV-ATTR:host"]: server["id"] for server in client.settle(ids)}
        assert set(self.servers) == set(HOSTS)

    def domain(self, host: str, server: str) -> Path:
        return self.cloud.directory / "state" / "fake-domains" / host / f"{server}.json"

    def restart(self, host: str) -> None:
        """Let a compute see which domains there are."""
        compute = self.computes[host]

        def starts() -> int:
            return compute.log.read_text().count("started service=")

        before = starts()
        compute.restart()
        wait_for(lambda: starts() > before, 60, compute.log.read_text)

    def audit(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run the program; return its exit status and what it printed as JSON."""
        program = Path(sys.executable).parent / "nova-lite-manage"
        command = [program, "--config-file", self.cloud.config, "audit", "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, 2), done.stdout + done.stderr
        return done.returncode, json.loads(done.stdout)

    def state(self) -> list[Any]:
        """Return what an audit might change: the books and the domains."""
        root = self.cloud.directory / "state" / "fake-domains"
        found: list[Any] = sorted((str(path), path.read_text()) for path in root.glob("*/*.json"))
        with self._connection() as conn:
            for table in BOOKS:
                found += sorted((tuple(row) for row in conn.execute(sa.select(table))), key=repr)
            used = "SELECT host, used_vcpus, used_memory_mb, used_disk_gb, instances, building FROM compute_nodes"
            found += sorted(tuple(row) for row in conn.execute(sa.text(used)))
        return found

    def change(self, statement: str) -> None:
        """Change rows behind everybody's back."""
        with self._connection() as conn, conn.begin():
            conn.execute(sa.text(statement))

    def _connection(self) -> sa.Connection:
        return sa.create_engine(self.cloud.database, poolclass=sa.NullPool).connect()


@pytest.fixture(scope="module")
def audited(mariadb: MariaDB, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    directory = tmp_path_factory.mktemp("cloud")
    settings = {
        "fake": {"control_file": str(faults.control_file(directory))},
        "DEFAULT": {"service_down_time": "60", "graceful_shutdown_timeout": "2"},
    }
    cloud = Cloud(directory, mariadb.url(mariadb.create_database()), rabbitmq.vhost_url(), settings)
    try:
        made = Audited(cloud)
        made.start()
        yield made
    finally:
        cloud.stop()


@pytest.fixture(scope="module")
def spoilt(audited: Audited) -> Audited:
    """The same cloud with a stray domain on left, and a server on right whose domain is gone."""
    audited.domain("left", STRAY).write_text(json.dumps({"uuid": STRAY, "node": "left", "power_state": 1}))
    audited.domain("right", audited.servers["right"]).unlink()
    for host in HOSTS:
        audited.restart(host)
    return audited


def kinds(said: dict[str, Any]) -> list[tuple[str, str]]:
    return sorted((finding["kind"], finding["subject"]) for finding in said["findings"])


def test_servers_and_domains_in_order(audited: Audited) -> None:
    for patience in ("120", "0"):
        assert audited.audit("--domains", "--patience", patience) == (0, {"findings": [], "mended": [], "skipped": []})


def test_a_stray_domain_and_a_server_without_one_are_told_and_left(spoilt: Audited) -> None:
    both = [("domain-without-server", STRAY), ("server-without-domain", spoilt.servers["right"])]
    # The server was built a moment ago, perhaps after its compute was asked.
    assert kinds(spoilt.audit()[1]) == both[:1]
    before = spoilt.state()
    status, said = spoilt.audit("--patience", "0")
    assert (status, said["skipped"], said["mended"]) == (2, [], [])
    assert kinds(said) == both
    told = {finding["kind"]: finding for finding in said["findings"]}
    assert told["domain-without-server"]["sentence"].startswith("A domain on left has the uuid of no server")
    assert told["server-without-domain"]["sentence"] == "The server is active on right, and has no domain there."
    assert told["server-without-domain"]["since"] is not None
    assert {finding["fix"] for finding in said["findings"]} == {None}
    assert spoilt.state() == before

    # Beside them, --fix mends what the books can only be wrong in.
    spoilt.change("UPDATE compute_nodes SET used_vcpus = used_vcpus + 3 WHERE host = 'left'")
    wrong = spoilt.state()
    status, said = spoilt.audit("--patience", "0")
    assert (status, kinds(said)) == (2, sorted([*both, ("node-used", "left")]))
    assert spoilt.state() == wrong
    status, said = spoilt.audit("--patience", "0", "--fix")
    assert (status, kinds(said)) == (2, both)
    [mended] = said["mended"]
    assert (mended["kind"], mended["subject"]) == ("node-used", "left")
    assert mended["fix"] == "set what is used to the sum of the allocations"
    assert spoilt.state() == before


def test_a_compute_that_does_not_answer_is_told_of_and_not_guessed_about(spoilt: Audited) -> None:
    before = spoilt.state()
    with faults.injected(spoilt.cloud.directory, {"*": {"domains": {"hang": True}}}):
        status, said = spoilt.audit("--patience", "0")
    assert (status, said["findings"]) == (0, [])
    assert [sentence.split(" were not looked at: ")[0] for sentence in said["skipped"]] == [
        f"Domains of {host}" for host in HOSTS
    ]
    assert all("hangs" in sentence for sentence in said["skipped"])

    silent = spoilt.computes["right"].process.pid
    os.killpg(silent, signal.SIGSTOP)
    try:
        status, said = spoilt.audit("--patience", "0", "--fix")
        assert (status, kinds(said), said["mended"]) == (2, [("domain-without-server", STRAY)], [])
        [sentence] = said["skipped"]
        assert sentence.startswith("Domains of right were not looked at: Timed out")

        spoilt.change("UPDATE services SET last_seen_at = '2001-01-01' WHERE host = 'right'")
        status, said = spoilt.audit("--patience", "0")
        assert (status, kinds(said)) == (2, [("domain-without-server", STRAY)])
        assert said["skipped"] == ["Domains of right were not looked at: the compute is down."]
    finally:
        os.killpg(silent, signal.SIGCONT)
    spoilt.cloud.wait_for_hosts("up")
    assert ("server-without-domain", spoilt.servers["right"]) in kinds(spoilt.audit("--patience", "0")[1])
    assert spoilt.state() == before

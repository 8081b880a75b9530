# SPDX-License-Identifier: Apache-2.0
"""Draining hosts: bounded, once each, cancelled, overlapping, with what cannot be moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db import drains
from nova_lite.db.session import Database
from tests.fixtures.client import wait_until_empty
from tests.functional.moves.conftest import Movers


class Drains:
    """Starts and watches drains as nova-lite-manage does."""

    def __init__(self, movers: Movers) -> None:
        self._movers = movers
        self.db = Database(movers.cloud.conf)

    def start(self, host: str, parallel: int = 2) -> None:
        self.db.write(lambda conn: drains.start(conn, host, parallel))

    def cancel(self, host: str) -> None:
        self.db.write(lambda conn: drains.cancel(conn, host))

    def last(self, host: str) -> drains.Drain:
        return [each for each in self.db.read(drains.search) if each.host == host][-1]

    def wait(self, host: str, patience: float = 30) -> None:
        wait_until_empty(lambda: [] if self.last(host).status == "completed" else [self.last(host)], patience)

    def moves_of(self, server: str) -> list[tuple[str, str]]:
        return self._movers.migrations(server)


@pytest.fixture
def draining(movers: Movers) -> Iterator[Drains]:
    made = Drains(movers)
    yield made
    made.db.close()
    for service in movers.client.get("/os-services?binary=nova-compute")["services"]:
        movers.client.call("PUT", f"/os-services/{service['id']}", {"status": "enabled"})


def test_a_host_is_emptied_and_stays_disabled(movers: Movers, draining: Drains) -> None:
    running, stopped = movers.boot("running", host="host1"), movers.boot("stopped", host="host1")
    movers.act(stopped, "os-stop")
    movers.settled(stopped)
    draining.start("host1")
    draining.wait("host1")
    assert movers.becomes(running, "ACTIVE") != "host1"
    assert movers.becomes(stopped, "SHUTOFF") != "host1"
    assert draining.moves_of(running) == [("live-migration", "completed")]
    assert draining.moves_of(stopped) == [("migration", "confirmed")]
    assert movers.used()["host1"] == 0
    (service,) = movers.client.get("/os-services?binary=nova-compute&host=host1")["services"]
    assert (service["status"], service["disabled_reason"]) == ("disabled", "This host is being drained.")


def test_no_more_servers_move_at_once_than_allowed(movers: Movers, draining: Drains) -> None:
    servers = [movers.boot(f"server-{number}", host="host1") for number in range(4)]
    most = 0

    def watch() -> list[Any]:
        nonlocal most
        found = movers.client.get("/os-migrations?source_compute=host1")["migrations"]
        mine = [each["status"] for each in found if each["instance_uuid"] in servers]
        most = max(most, sum(status not in ("completed", "error") for status in mine))
        last = draining.last("host1")
        return [] if last.status == "completed" else [last]

    draining.start("host1", parallel=1)
    wait_until_empty(watch, 30)
    assert most == 1
    assert all(draining.moves_of(server) == [("live-migration", "completed")] for server in servers)


def test_overlapping_drains_move_each_server_once(movers: Movers, draining: Drains) -> None:
    one = [movers.boot(f"one-{number}", host="host1") for number in range(2)]
    two = [movers.boot(f"two-{number}", host="host2") for number in range(2)]
    draining.start("host1")
    draining.start("host2")
    draining.wait("host1")
    draining.wait("host2")
    for server in one + two:
        assert movers.becomes(server, "ACTIVE") == "host3"
        assert draining.moves_of(server) == [("live-migration", "completed")]


def test_a_cancelled_one_leaves_what_has_not_begun(movers: Movers, draining: Drains) -> None:
    servers = [movers.boot(f"server-{number}", host="host1") for number in range(3)]
    movers.cloud.conf.set_override("live_migration_seconds", 2, group="fake")
    try:
        draining.start("host1", parallel=1)
        moving = "/os-migrations?source_compute=host1&status=running"
        wait_until_empty(lambda: [] if movers.client.get(moving)["migrations"] else ["none runs"], 10)
        draining.cancel("host1")
        movers.client.settle(servers)
    finally:
        movers.cloud.conf.clear_override("live_migration_seconds", group="fake")
    hosts = sorted(movers.settled(server)[1] == "host1" for server in servers)
    assert hosts == [False, True, True]
    (service,) = movers.client.get("/os-services?binary=nova-compute&host=host1")["services"]
    assert service["status"] == "enabled"


def test_what_cannot_be_moved_is_named(movers: Movers, draining: Drains) -> None:
    group = movers.client.group("anti-affinity")
    members = [movers.boot(f"member-{n}", host=f"host{n}", group=group) for n in (1, 2, 3)]
    draining.start("host1")
    wait_until_empty(lambda: [] if draining.last("host1").message else ["nothing is said"], 30)
    message = draining.last("host1").message or ""
    assert members[0] in message and "anti-affinity" in message
    assert movers.settled(members[0]) == ("ACTIVE", "host1")
    movers.client.delete([members[2]])
    draining.cancel("host1")
    draining.start("host1")
    draining.wait("host1")
    assert movers.settled(members[0]) == ("ACTIVE", "host3")


def test_a_second_drain_of_a_host_is_refused(movers: Movers, draining: Drains) -> None:
    movers.boot(host="host1")
    draining.start("host1")
    with pytest.raises(Exception, match="being drained already"):
        draining.start("host1")
    draining.wait("host1")
    with draining.db.engine.connect() as conn:
        active = sa.select(sa.func.count()).where(drains.drains.c.active_host.is_not(None))
        assert conn.execute(active).scalar_one() == 0


def test_a_server_that_comes_back_is_moved_again(movers: Movers, draining: Drains) -> None:
    suspended, running = movers.boot("suspended", host="host1"), movers.boot("running", host="host1")
    movers.act(suspended, "suspend")
    movers.settled(suspended)
    draining.start("host1")
    wait_until_empty(lambda: [] if movers.settled(running)[1] != "host1" else ["it is still there"], 20)
    (service,) = movers.client.get("/os-services?binary=nova-compute&host=host1")["services"]
    movers.client.call("PUT", f"/os-services/{service['id']}", {"status": "enabled"})
    movers.act(running, "os-migrateLive", {"host": "host1", "block_migration": "auto"})
    wait_until_empty(lambda: [] if len(draining.moves_of(running)) >= 3 else [draining.moves_of(running)], 20)
    movers.settled(running)
    draining.cancel("host1")
    movers.settled(running)
    assert {status for _type, status in draining.moves_of(running)} <= {"completed", "cancelled"}

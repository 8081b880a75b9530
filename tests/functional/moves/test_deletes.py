# SPDX-License-Identifier: Apache-2.0
"""A delete at every step of every move: it is done, and nothing of the server is left on any host.

The fixture of each test looks at the books and at the hosts when the server is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite import audit
from nova_lite.db.models import migrations, operations
from nova_lite.db.session import Database
from nova_lite.objects import move as steps
from tests.fixtures.client import wait_until_empty
from tests.functional.moves.conftest import Movers
from tests.functional.moves.test_evacuation import dead

SLOW = {"delay": 0.6}
BROKEN = {"fail": "the cable is broken"}


class Deleter:
    """Deletes servers at chosen moments, and audits while it does."""

    def __init__(self, movers: Movers) -> None:
        self.movers = movers
        self.db = Database(movers.cloud.conf)

    def at(self, server: str, step: str) -> None:
        """Delete the server as soon as its move is at a step."""
        mine = sa.and_(operations.c.instance_uuid == server, operations.c.status == "active")

        def not_yet() -> list[Any]:
            found = self.db.read(lambda conn: conn.execute(sa.select(operations.c.step).where(mine)).scalars().all())
            return [] if step in found else [found, "instead of", step]

        wait_until_empty(not_yet, 10)
        self.now(server)

    def now(self, server: str) -> None:
        self.movers.client.call("DELETE", f"/servers/{server}")
        wait_until_empty(lambda: self._look([server]), 20)
        held = sa.and_(migrations.c.instance_uuid == server, migrations.c.open.is_(True))
        assert not self.db.read(lambda conn: conn.execute(sa.select(migrations).where(held)).all())

    def _look(self, servers: list[str]) -> list[Any]:
        # At no moment of a delete do the books contradict each other.
        assert not audit.find(audit.look(self.db))
        return self.movers.client.servers(servers)


@pytest.fixture
def delete(movers: Movers) -> Iterator[Deleter]:
    made = Deleter(movers)
    yield made
    assert not audit.find(audit.look(made.db))
    made.db.close()


COLD = [
    (steps.PREPARE, "prepare_destination"),
    (steps.MOVE_OUT, "move_out"),
    (steps.FINISH, "finish_migration"),
]
LIVE = [
    (steps.PREPARE, "prepare_destination"),
    (steps.LIVE_MIGRATE, "live_migrate"),
    (steps.LIVE_MIGRATE, "live_migrate_end"),
    (steps.LAND, "land"),
    (steps.CLEAN, "clean"),
]
BACK = [(steps.DISCARD, "discard"), (steps.RESTORE, "restore")]


@pytest.mark.parametrize(("step", "action"), COLD)
@pytest.mark.parametrize("host", ["host2", None])
def test_at_a_step_of_a_cold_migration(
    movers: Movers, delete: Deleter, step: str, action: str, host: str | None
) -> None:
    server = movers.boot(host="host1")
    with movers.faults(server={action: SLOW}):
        movers.act(server, "migrate", {"host": host} if host else None)
        delete.at(server, step)


@pytest.mark.parametrize(("step", "action"), COLD)
def test_at_a_step_of_a_resize_on_the_same_host(movers: Movers, delete: Deleter, step: str, action: str) -> None:
    movers.force_down("host2")
    movers.force_down("host3")
    try:
        server = movers.boot(host="host1")
        with movers.faults(server={action: SLOW}):
            movers.act(server, "resize", {"flavorRef": movers.large})
            delete.at(server, step)
    finally:
        movers.force_down("host2", False)
        movers.force_down("host3", False)


@pytest.mark.parametrize(("step", "action"), LIVE)
def test_at_a_step_of_a_live_migration(movers: Movers, delete: Deleter, step: str, action: str) -> None:
    server = movers.boot(host="host1")
    with movers.faults(server={action: SLOW}):
        movers.act(server, "os-migrateLive", {"host": "host2", "block_migration": "auto"})
        delete.at(server, step)


def test_while_an_evacuated_server_is_built(movers: Movers, delete: Deleter) -> None:
    server = movers.boot(host="host1")
    with dead(movers, "host1"), movers.faults(server={"spawn": SLOW}):
        movers.act(server, "evacuate", {})
        delete.at(server, steps.REBUILD)


def test_while_the_dead_host_still_has_an_evacuated_server(movers: Movers, delete: Deleter) -> None:
    server = movers.boot(host="host1")
    with dead(movers, "host1"), movers.faults(server={"clean": BROKEN}):
        movers.act(server, "evacuate", {})
        assert movers.settled(server)[1] != "host1"
        assert movers.used()["host1"] == 1
        delete.now(server)


def test_while_a_migration_waits(movers: Movers, delete: Deleter) -> None:
    server = movers.boot(host="host1")
    movers.act(server, "migrate", None)
    assert movers.settled(server)[0] == "VERIFY_RESIZE"
    delete.now(server)


def test_while_it_is_confirmed(movers: Movers, delete: Deleter) -> None:
    server = movers.boot(host="host1")
    movers.act(server, "migrate", None)
    assert movers.settled(server)[0] == "VERIFY_RESIZE"
    with movers.faults(server={"clean": SLOW}):
        movers.act(server, "confirmResize")
        delete.at(server, steps.CLEAN)


@pytest.mark.parametrize(("step", "action"), BACK)
def test_while_it_is_reverted(movers: Movers, delete: Deleter, step: str, action: str) -> None:
    server = movers.boot(host="host1")
    movers.act(server, "resize", {"flavorRef": movers.large})
    assert movers.settled(server)[0] == "VERIFY_RESIZE"
    with movers.faults(server={action: SLOW}):
        movers.act(server, "revertResize")
        delete.at(server, step)


@pytest.mark.parametrize(("step", "action"), BACK)
@pytest.mark.parametrize("failing", ["move_out", "finish_migration", "live_migrate_end"])
def test_while_a_move_that_failed_is_undone(
    movers: Movers, delete: Deleter, failing: str, step: str, action: str
) -> None:
    server = movers.boot(host="host1")
    with movers.faults(server={failing: BROKEN, action: SLOW}):
        if failing == "live_migrate_end":
            movers.act(server, "os-migrateLive", {"host": "host2", "block_migration": "auto"})
        else:
            movers.act(server, "resize", {"flavorRef": movers.large})
        delete.at(server, step)


@pytest.mark.parametrize("end", ["prepare_destination", "finish_migration", "live_migrate_end", "land", "discard"])
def test_when_what_it_interrupts_takes_longer_than_it(movers: Movers, delete: Deleter, end: str) -> None:
    """The step's thread holds its server's lock for longer than the conductor waits: what it makes goes afterwards."""
    server = movers.boot(host="host1")
    broken = {"move_out": BROKEN} if end == "discard" else {}
    with movers.faults(server={end: {"delay": 1.5}, **broken}):
        if end in ("live_migrate_end", "land"):
            movers.act(server, "os-migrateLive", {"host": "host2", "block_migration": "auto"})
        else:
            movers.act(server, "resize", {"flavorRef": movers.large})
        wait_until_empty(lambda: [] if movers.migrations(server) else ["nothing moves"], 10)
        movers.client.delete([server])

# SPDX-License-Identifier: Apache-2.0
"""Messages about moves that come twice, or so late that the move has gone on: nothing is done again, or taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db import actions, allocations, instances, moves
from nova_lite.db import operations as operations_db
from nova_lite.db.models import migrations, operations
from nova_lite.db.session import Database
from nova_lite.objects import move as steps
from nova_lite.objects.build import Claim
from tests.fixtures.client import ApiError, wait_until_empty
from tests.functional.moves.conftest import Movers
from tests.functional.moves.test_evacuation import dead


@pytest.fixture
def db(movers: Movers) -> Iterator[Database]:
    made = Database(movers.cloud.conf)
    yield made
    made.close()


def step_of(db: Database, server: str) -> str | None:
    """Return the step that an operation on the server is at."""
    mine = sa.and_(operations.c.instance_uuid == server, operations.c.status == "active")
    return db.read(lambda conn: conn.execute(sa.select(operations.c.step).where(mine)).scalar_one_or_none())


@pytest.mark.parametrize("step", [steps.PREPARE, steps.MOVE_OUT, steps.FINISH])
def test_a_claim_that_comes_again_does_not_take_its_move_back(movers: Movers, db: Database, step: str) -> None:
    server = movers.boot(host="host1")
    actions = {steps.PREPARE: "prepare_destination", steps.MOVE_OUT: "move_out", steps.FINISH: "finish_migration"}
    with movers.faults(server={actions[step]: {"delay": 1}}):
        movers.act(server, "migrate", {"host": "host2"})
        wait_until_empty(lambda: [] if step_of(db, server) == step else [step_of(db, server)], 10)
        wait_until_empty(lambda: [] if movers.used()["host2"] else ["nothing is claimed"], 10)
        mine = migrations.c.instance_uuid == server
        move = db.read(lambda conn: conn.execute(sa.select(migrations).where(mine)).one())
        again = Claim(move.operation_uuid, server, 12345, move.dest_node_id, "control", move.uuid, steps.PREPARE)
        outcome = db.write(lambda conn: allocations.consume(conn, [again], 5))[0]
        assert outcome.granted == (step == steps.PREPARE)
        assert step_of(db, server) == step
        assert movers.settled(server) == ("VERIFY_RESIZE", "host2")


def test_a_delete_that_was_given_up_frees_nothing(movers: Movers, db: Database) -> None:
    """A conductor had claimed the delete when an administrator reset the server's state."""
    server = movers.boot(host="host1")
    caller = instances.Caller("admin", "admin", "req-1")
    accepted = db.write(lambda conn: instances.begin_delete(conn, server, caller))
    claimed = db.read(lambda conn: operations_db.get_many(conn, [accepted]))
    movers.act(server, "os-resetState", {"state": "active"})
    assert db.write(lambda conn: actions.finish_deletes(conn, claimed)) == []
    assert movers.settled(server) == ("ACTIVE", "host1")
    assert movers.used()["host1"] == 1
    movers.agree()


def test_an_evacuation_does_not_cancel_a_delete(movers: Movers, db: Database) -> None:
    server = movers.boot(host="host1")
    caller = instances.Caller("admin", "admin", "req-1", may_override_lock=True)
    db.write(lambda conn: instances.begin_delete(conn, server, caller))

    def evacuate() -> str:
        return db.write(
            lambda conn: moves.begin(
                conn,
                movers.cloud.conf,
                server,
                kind=operations_db.EVACUATE,
                caller=caller,
                vm_states=("active",),
                task_states=None,
            )
        )

    with pytest.raises(exception.InstanceInvalidState, match="deleting"):
        evacuate()


def test_the_state_of_a_server_is_not_reset_while_it_moves(movers: Movers) -> None:
    """What is on the other host would be taken for a leftover: of a server that is reverted, all there is."""
    server = movers.boot(host="host1")
    with movers.faults(server={"move_out": {"delay": 0.7}}):
        movers.act(server, "migrate", {"host": "host2"})
        with pytest.raises(ApiError, match="409.*being moved"):
            movers.act(server, "os-resetState", {"state": "active"})
        assert movers.settled(server) == ("VERIFY_RESIZE", "host2")
    with pytest.raises(ApiError, match="409.*being moved"):
        movers.act(server, "os-resetState", {"state": "error"})
    movers.act(server, "revertResize")
    movers.only_on(server, "host1")
    movers.becomes(server, "ACTIVE")
    movers.act(server, "os-resetState", {"state": "error"})
    assert movers.settled(server) == ("ERROR", "host1")


def test_what_a_destination_has_that_died_while_it_made_room_goes_when_it_returns(movers: Movers) -> None:
    server = movers.boot(host="host1")
    broken = {"prepare_destination": {"fail": "its power went"}}
    with movers.faults(host2=broken, host3=broken):
        movers.act(server, "migrate", None)
        assert movers.settled(server) == ("ACTIVE", "host1")
    # As it would be had the power gone a moment later.
    for host in ("host2", "host3"):
        Path(movers.cloud.conf.fake.domains_path, host, f"{server}.disk").touch()
    movers.only_on(server, "host1")


def test_a_live_migration_whose_two_hosts_are_dead_is_undone(movers: Movers, db: Database) -> None:
    server = movers.boot(host="host1")
    with movers.faults(host1={"live_migrate": {"hang": True}}):
        movers.act(server, "os-migrateLive", {"host": "host2", "block_migration": "auto"})
        wait_until_empty(lambda: [] if step_of(db, server) == steps.LIVE_MIGRATE else [step_of(db, server)], 10)
        movers.force_down("host1")
        movers.force_down("host2")
        try:
            assert movers.becomes(server, "ACTIVE") == "host1"
        finally:
            movers.force_down("host1", False)
            movers.force_down("host2", False)
    assert movers.migrations(server) == [("live-migration", "error")]
    assert movers.used() == {"host1": 1, "host2": 0, "host3": 0}
    movers.only_on(server, "host1")


@pytest.mark.parametrize("live", [True, False])
def test_a_server_does_not_come_back_to_a_host_that_still_has_its_last_domain(movers: Movers, live: bool) -> None:
    """That host would take the move for a resize in its own place, and the source would be left with a second half."""
    server = movers.boot(host="host1")
    movers.act(server, "migrate", {"host": "host2"})
    assert movers.settled(server) == ("VERIFY_RESIZE", "host2")
    with movers.faults(host1={"clean": {"fail": "a disk is stuck"}}):
        movers.act(server, "confirmResize")
        assert movers.becomes(server, "ACTIVE") == "host2"
        if live:
            movers.act(server, "os-migrateLive", {"host": "host1", "block_migration": "auto"})
        else:
            movers.act(server, "migrate", {"host": "host1"})
        assert movers.settled(server) == ("ACTIVE", "host2")
    assert movers.migrations(server)[1][1] == "error"
    movers.only_on(server, "host2")
    movers.agree()


def test_a_server_is_not_evacuated_to_a_host_that_still_has_its_last_domain(movers: Movers) -> None:
    server = movers.boot(host="host1")
    movers.act(server, "migrate", {"host": "host2"})
    assert movers.settled(server) == ("VERIFY_RESIZE", "host2")
    with movers.faults(host1={"clean": {"fail": "a disk is stuck"}}):
        movers.act(server, "confirmResize")
        assert movers.becomes(server, "ACTIVE") == "host2"
        with dead(movers, "host2"):
            movers.act(server, "evacuate", {"host": "host1"})
            movers.settled(server)
            assert movers.migrations(server)[1] == ("evacuation", "error")
            movers.act(server, "evacuate", {})
            assert movers.settled(server)[1] == "host3"
    movers.only_on(server, "host3")

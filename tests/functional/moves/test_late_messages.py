# SPDX-License-Identifier: Apache-2.0
"""Messages about moves that come twice, or so late that the move has gone on: nothing is done again, or taken back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from nova_lite.db import allocations
from nova_lite.db.models import migrations, operations
from nova_lite.db.session import Database
from nova_lite.objects import move as steps
from nova_lite.objects.build import Claim
from tests.fixtures.client import wait_until_empty
from tests.functional.moves.conftest import Movers


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

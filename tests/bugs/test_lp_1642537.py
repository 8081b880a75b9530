# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1642537, 1739658, 1480305 and 1375467: a deadlock in the database becomes a 500, or a server in ERROR.

Some writer was not wrapped in a retry, each time another one. Here there is one way to write, which runs a unit again
as a whole: a deadlock at every unit's first statement is noticed by nobody. When it is ten in a row the unit gives up,
and then the user gets a 5xx with nothing written, or the operation is taken up again; nothing is stuck or half done.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bugs.story import Story, as_it_should_be
from tests.fixtures.client import Client
from tests.fixtures.faulty_database import STATEMENT, FaultyDatabase
from tests.fixtures.inside import InsideCloud

# Every unit that is written while servers live and die, by who writes it.
API = {
    "instances.begin_delete",
    "instances.create",
    "instances.set_lock",
    "server_actions.ServerAction._begin.unit",
    "server_groups.create",
    "server_groups.delete",
}
SCHEDULER = {"grants.expire", "grants.write"}
CONDUCTOR = {
    "actions.finish_deletes",
    "actions.hand_to_compute",
    "allocations.consume",
    "builds.complete",
    "builds.count_failure",
    "builds.fail",
    "builds.note_placed",
    "builds.retry_elsewhere",
    "endings.complete",
    "operations.claim",
    "operations.claim_abandoned",
    "registry.heartbeat",
}
# Not in every story: they are written when there is a reason to.
SOMETIMES = {
    "drains.claim",
    "actions.report_power_state",
    "builds.schedule_again",
    "compute_services.update",
    "endings.fail",
    "grants.remove",
    "operations.release",
    "operations.renew",
}
TRIES = 10


@pytest.fixture(scope="module")
def database() -> Iterator[FaultyDatabase]:
    with FaultyDatabase().installed() as database:
        yield database


def test_one_deadlock_in_every_unit(inside: InsideCloud, client: Client, database: FaultyDatabase) -> None:
    story = Story(inside, client)
    with database.failing(STATEMENT, lambda _unit, attempt: attempt == 1):
        booted = story.boot()
        acted = story.act()
        story.end()
    assert not story.refusals
    as_it_should_be(booted, acted)
    assert set(database.failed) >= API | SCHEDULER | CONDUCTOR
    assert set(database.failed) <= API | SCHEDULER | CONDUCTOR | SOMETIMES, "a new writer: give it its place here"


@pytest.mark.parametrize(
    "units",
    [
        API - {"server_groups.delete"},
        SCHEDULER | {"server_groups.delete"},
        {"operations.claim", "allocations.consume", "endings.complete"},
        {"operations.claim_abandoned", "builds.complete", "actions.hand_to_compute", "builds.fail"},
        {"builds.note_placed", "builds.retry_elsewhere", "actions.finish_deletes", "registry.heartbeat"},
        {"builds.count_failure", "builds.schedule_again", "actions.report_power_state"},
    ],
    ids=lambda units: "+".join(sorted(units)),
)
def test_ten_deadlocks_in_a_row(inside: InsideCloud, client: Client, database: FaultyDatabase, units: set[str]) -> None:
    story = Story(inside, client)
    with database.failing(STATEMENT, lambda unit, _attempt: unit in units and database.failed[unit] < TRIES):
        servers = story.boot()
        for server in servers:
            assert server["status"] in ("ACTIVE", "ERROR")
            assert server["status"] == "ACTIVE" or server["fault"]["message"]
        for server in story.act():
            assert server["status"] in ("ACTIVE", "SHUTOFF", "ERROR")
        story.end()
    assert all(database.failed[unit] == TRIES for unit in units - SOMETIMES), database.failed
    for refusal in story.refusals:
        assert refusal.status >= 500
        assert "eadlock" not in refusal.body and "SELECT" not in refusal.body

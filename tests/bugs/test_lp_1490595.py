# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1490595, openstack-dev of June 2015: every statement went well, and COMMIT fails.

A cluster certifies a transaction at its COMMIT; who counts rows before it believes what never happened. And when the
answer to COMMIT is lost, it may have happened. Here a unit is run again as a whole in both cases, finds what it may
have done already, and nobody notices either.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from tests.bugs.story import Story, as_it_should_be
from tests.fixtures import races
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.faulty_database import AFTER_COMMIT, COMMIT, FaultyDatabase
from tests.fixtures.inside import InsideCloud
from tests.fixtures.scheduling import Scheduling

# What was claimed without anybody knowing is taken over when its lease has run out: once is enough to wait for.
CLAIMS = ("operations.claim", "operations.claim_abandoned")


@pytest.fixture(scope="module")
def database() -> Iterator[FaultyDatabase]:
    with FaultyDatabase().installed() as database:
        yield database


def test_a_failed_attempt_is_noted_again_when_the_build_has_moved_on(scheduling: Scheduling) -> None:
    for host in ("host1", "host2"):
        scheduling.add_host(host)
    placer = scheduling.placer()
    spec = scheduling.request(host="host1")
    scheduling.boot(placer, spec)
    first_attempt = scheduling.build(spec.consumer)
    # The commit of this is done, its answer is lost; another conductor goes on with what it finds.
    assert scheduling.fail(first_attempt, "the disk is broken")
    scheduling.boot(placer, dataclasses.replace(spec, requested_host="host2"))

    assert not scheduling.fail(first_attempt, "the disk is broken")

    now = scheduling.build(spec.consumer)
    assert (now.instance.host, now.instance.task_state) == ("host2", "spawning")
    assert [attempt["host"] for attempt in now.attempts] == ["host1"]
    assert not disagreements(scheduling.url)


@pytest.mark.parametrize("moment", [COMMIT, AFTER_COMMIT])
def test_every_commit_fails_once(inside: InsideCloud, client: Client, database: FaultyDatabase, moment: str) -> None:
    def plan(unit: str, attempt: int) -> bool:
        return attempt == 1 and (moment == COMMIT or unit not in CLAIMS or not database.failed[unit])

    story = Story(inside, client)
    with database.failing(moment, plan):
        booted = story.boot()
        acted = story.act()
        groups = client.get("/os-server-groups")["server_groups"]
        builds = {server["name"]: races.attempts(client, [server]) for server in booted}
        kinds = {
            server["id"]: [
                action["action"]
                for action in client.get(f"/servers/{server['id']}/os-instance-actions")["instanceActions"]
            ]
            for server in acted
        }
        story.end()
    assert len(database.failed) > 15
    assert not story.refusals
    as_it_should_be(booted, acted)
    assert len(groups) == 1
    # The one that was retried had a choice of hosts, and may not have met host1.
    assert builds == {"member": 1, "forced": 1, "huge": 0, "retried": builds["retried"]}
    assert builds["retried"] in (1, 2)
    for server in acted:
        expected = ["reboot", "start", "stop", "unlock", "lock", "create"]
        assert kinds[server["id"]] == (expected if server["status"] == "ACTIVE" else ["create"])

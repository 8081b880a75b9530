# SPDX-License-Identifier: Apache-2.0
"""apache/cloudstack#5527 and #5378: members that start on their last hosts, or that an operator moves, break the rule.

A start looked at no group, and neither did a move to a host that was named. Here a server that is off keeps its place,
and what it is in keeps counting; every move is checked against the group, a forced one too. (There, servers can join a
group when they are off. Here membership begins with the boot, as in the Compute API, so that half of the story cannot
be told.)
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import at_once
from tests.fixtures.movers import Movers

HOSTS = ("host1", "host2", "host3")


@pytest.fixture
def members(moving: Movers) -> list[str]:
    group = moving.client.group("anti-affinity")
    return [moving.boot(f"member-{host}", host, group=group) for host in HOSTS]


def test_members_that_were_off_start_at_once(moving: Movers, members: list[str]) -> None:
    for action, status in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE")):
        at_once(3, lambda number, action=action: moving.act(members[number], action))  # type: ignore[misc]
        assert [moving.settled(server) for server in members] == [(status, host) for host in HOSTS]
        moving.agree()


def test_nobody_takes_the_place_of_a_member_that_is_off(moving: Movers, members: list[str]) -> None:
    moving.act(members[1], "os-stop")
    assert moving.settled(members[1]) == ("SHUTOFF", "host2")
    moving.act(members[0], "migrate", {"host": "host2"})
    assert moving.settled(members[0]) == ("ACTIVE", "host1")
    assert "1 already with 1 member of the anti-affinity group" in moving.details(members[0])


@pytest.mark.parametrize("forced", [False, True])
def test_an_operator_names_the_host_of_a_member(moving: Movers, members: list[str], forced: bool) -> None:
    value = {"host": "host2", "block_migration": "auto", **({"force": True} if forced else {})}
    older = {"OpenStack-API-Version": "compute 2.67"}
    path = f"/servers/{members[0]}/action"
    moving.client.call("POST", path, {"os-migrateLive": value}, headers=older if forced else {})
    assert moving.settled(members[0]) == ("ACTIVE", "host1")
    assert moving.migrations(members[0]) == [("live-migration", "error")]
    assert moving.in_use() == dict.fromkeys(HOSTS, 1)
    moving.agree()

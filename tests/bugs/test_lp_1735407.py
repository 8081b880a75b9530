# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1735407: two members of an anti-affinity group that are evacuated at once land together.

The rule was checked before either had arrived, and not again. Here the grant of each is checked against the other's;
without a host that keeps the rule, the member stays down where it was and says why.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import at_once
from tests.fixtures.movers import Movers

HOSTS = ("host1", "host2")


@pytest.fixture
def members(moving: Movers) -> list[str]:
    """Two members, each on a host that is dead."""
    group = moving.client.group("anti-affinity")
    servers = [moving.boot(f"member-{host}", host, group=group) for host in HOSTS]
    for host in HOSTS:
        moving.force_down(host)
    return servers


def test_two_hosts_are_left(moving: Movers, members: list[str]) -> None:
    at_once(2, lambda number: moving.evacuate(members[number]))
    places = [moving.settled(server) for server in members]
    assert sorted(places) == [("ACTIVE", "host3"), ("ACTIVE", "host4")]
    moving.agree()


def test_one_host_is_left(moving: Movers, members: list[str]) -> None:
    moving.change_service("host4", status="disabled")
    at_once(2, lambda number: moving.evacuate(members[number]))
    places = {moving.settled(server)[1]: server for server in members}
    assert len(places) == 2 and "host3" in places and "host4" not in places
    (stayed,) = (server for host, server in places.items() if host != "host3")
    assert moving.migrations(stayed) == [("evacuation", "error")]
    assert "1 already with 1 member of the anti-affinity group" in moving.details(stayed)
    moving.agree()

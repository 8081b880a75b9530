# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1713786: an evacuation that fails stays charged on its destination, and one that is forced never was.

Here the destination is charged by the same grant as at any boot, whoever chose it; if it fails, that goes again.
"""

from __future__ import annotations

import pytest

from tests.fixtures.movers import Movers


@pytest.fixture
def server(moving: Movers) -> str:
    """A server on a dead host; host2 is full."""
    moving.boot("filler", "host2", flavor=moving.client.flavor("whole", vcpus=4))
    server = moving.boot(host="host1")
    moving.force_down("host1")
    return server


@pytest.mark.parametrize("forced", [False, True])
def test_to_a_host_that_is_full(moving: Movers, server: str, forced: bool) -> None:
    moving.evacuate(server, "host2", force=forced)
    assert moving.settled(server) == ("ACTIVE", "host1")
    assert moving.migrations(server) == [("evacuation", "error")]
    assert "without room" in moving.details(server)
    assert moving.in_use() == {"host1": 1, "host2": 4}
    moving.agree()


def test_to_a_host_with_room(moving: Movers, server: str) -> None:
    with moving.faults(server={"spawn": {"delay": 0.4}}):
        moving.evacuate(server, "host3")
        moving.reaches(server, "rebuilding")
        assert moving.settled(server) == ("ACTIVE", "host3")
    moving.only_on(server, "host3")
    assert moving.used()["host3"] == 1
    moving.agree()


def test_to_hosts_that_fail(moving: Movers, server: str) -> None:
    with moving.faults(server={"spawn": {"fail": "no space left"}}):
        moving.evacuate(server)
        assert moving.settled(server) == ("ACTIVE", "host1")
    assert moving.in_use() == {"host1": 1, "host2": 4}
    assert moving.details(server).count("no space left") >= 2
    moving.agree()

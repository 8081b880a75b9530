# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1392527: a server that is deleted while it is resized leaves its disks on a host.

The delete went to one of the two. Here it goes to both, and each host's report of what is there makes sure of it.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import wait_until_empty
from tests.fixtures.movers import Movers

SLOW = {"delay": 0.4}


def waits(moving: Movers) -> str:
    server = moving.boot(host="host1")
    moving.act(server, "migrate", {"host": "host2"})
    assert moving.settled(server) == ("VERIFY_RESIZE", "host2")
    return server


def nothing_is_left(moving: Movers, server: str) -> None:
    assert moving.in_use() == {}
    wait_until_empty(lambda: moving.files(server), 20)
    moving.agree()


@pytest.mark.parametrize("step", ["prepare_destination", "move_out", "finish_migration"])
def test_on_the_way_there(moving: Movers, step: str) -> None:
    server = moving.boot(host="host1")
    states = {"move_out": "resize_migrating", "finish_migration": "resize_finish"}
    with moving.faults(server={step: SLOW}):
        moving.act(server, "resize", {"flavorRef": moving.large})
        moving.reaches(server, states.get(step, "resize_prep"))
        moving.client.delete([server])
    nothing_is_left(moving, server)


@pytest.mark.parametrize(
    ("end", "step"), [("confirmResize", "clean"), ("revertResize", "discard"), ("revertResize", "restore")]
)
def test_at_its_end(moving: Movers, end: str, step: str) -> None:
    server = waits(moving)
    with moving.faults(server={step: SLOW}):
        moving.act(server, end)
        moving.client.delete([server])
    nothing_is_left(moving, server)


def test_while_it_waits(moving: Movers) -> None:
    server = waits(moving)
    moving.client.delete([server])
    nothing_is_left(moving, server)

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1978983: a server whose host died in the middle of an action cannot be evacuated.

Its task state refused everything, and nobody would ever end it. Here an evacuation interrupts what a dead host was
doing, and what that tells of it later, should it return, changes nothing.
"""

from __future__ import annotations

import pytest

from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack


@pytest.mark.parametrize(
    ("action", "value", "task_state", "slow"),
    [("os-stop", None, "powering-off", "power_off"), ("migrate", None, "resize_migrating", "move_out")],
)
def test_a_host_dies_meanwhile(
    rack: Rack, racked: Movers, action: str, value: None, task_state: str, slow: str
) -> None:
    server = racked.boot(host="host1")
    with racked.faults(server={slow: {"delay": 60}}):
        racked.act(server, action, value)
        racked.reaches(server, task_state)
        rack.hosts["host1"].kill()
    racked.force_down("host1")
    if action == "migrate":
        # What cannot go on ends by itself once the host is certain to be dead.
        assert racked.settled(server) == ("ACTIVE", "host1")
    racked.evacuate(server, "host2")
    assert racked.settled(server) == ("ACTIVE", "host2")
    rack.restart_host("host1")
    racked.only_on(server, "host2")
    assert racked.settled(server) == ("ACTIVE", "host2")
    racked.agree()

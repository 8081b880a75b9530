# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1252409: a compute whose hypervisor does not answer hangs, and still counts as alive.

Here its heartbeat asks the hypervisor first: one that hangs costs the host its heartbeat, the cloud builds elsewhere,
and what needs no hypervisor is served. When it answers again, so does the host.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import ApiError
from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack

HANGING = {"check": {"delay": 6}, "domains": {"delay": 6}}


def test_a_hypervisor_hangs_for_a_while(rack: Rack, racked: Movers) -> None:
    server = racked.boot(host="host1")
    with racked.faults(host1=HANGING):
        racked.wait_for_service("host1", "down")
        assert racked.client.server(server)["status"] == "ACTIVE"
        assert racked.host_of(racked.boot("elsewhere")) != "host1"
        with pytest.raises(ApiError, match="409"):
            racked.live_migrate(server)
    assert rack.hosts["host1"].process.poll() is None
    racked.wait_for_service("host1", "up")
    racked.live_migrate(server, "host2")
    assert racked.settled(server) == ("ACTIVE", "host2")

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1922053: a host that was declared up again without a restart removes a guest that has moved back, later.

The evacuation was still on record as not cleaned up when the host restarted at last. Here a host cannot be declared up
before it has cleaned up, and what it may remove is judged by where the server is now.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import ApiError
from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack


def test_a_guest_moves_back_to_a_host_that_restarts(rack: Rack, racked: Movers) -> None:
    server = racked.boot(host="host1")
    rack.hosts["host1"].kill()
    racked.force_down("host1")
    racked.evacuate(server, "host2")
    assert racked.settled(server) == ("ACTIVE", "host2")
    with pytest.raises(ApiError, match="409.*not cleaned up"):
        racked.force_down("host1", False)
    rack.restart_host("host1")
    racked.only_on(server, "host2")
    racked.force_down("host1", False)
    racked.wait_for_service("host1", "up")

    racked.live_migrate(server, "host1")
    assert racked.settled(server) == ("ACTIVE", "host1"), racked.details(server)
    rack.restart_host("host1")
    racked.wait_for_service("host1", "up")
    racked.only_on(server, "host1")
    assert racked.settled(server) == ("ACTIVE", "host1")
    racked.agree()

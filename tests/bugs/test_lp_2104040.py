# SPDX-License-Identifier: Apache-2.0
"""Launchpad 2104040, 1924123, 1941892 and 1943191: a host that is over-full cannot be relieved.

Whatever touched a server's allocation was checked against the host's capacity anew, its own place included: moving it
away, too. Here only what is added to a host is checked.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import ApiError
from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack


def test_the_ratio_is_lowered_below_what_is_used(rack: Rack, racked: Movers) -> None:
    servers = [racked.boot(f"server-{number}", "host1") for number in range(4)]
    rack.restart_host("host1", {"compute": {"cpu_allocation_ratio": "0.25"}})
    racked.wait_for_service("host1", "up")
    assert racked.in_use() == {"host1": 4}
    refused = racked.client.boot("one-more", racked.small, availability_zone="nova:host1")
    assert racked.settled(refused)[0] == "ERROR"
    # What stays there can be used, moved or not.
    racked.act(servers[0], "reboot", {"type": "HARD"})
    assert racked.settled(servers[0]) == ("ACTIVE", "host1")

    racked.live_migrate(servers[0])
    status, host = racked.settled(servers[0])
    assert status == "ACTIVE" and host != "host1", racked.details(servers[0])
    racked.act(servers[1], "migrate", None)
    assert racked.settled(servers[1])[0] == "VERIFY_RESIZE", racked.details(servers[1])
    racked.act(servers[1], "confirmResize")
    racked.becomes(servers[1], "ACTIVE")
    assert racked.used()["host1"] == 2
    # One that fails comes back, though its host is over-full.
    with racked.faults(**{"server-2": {"finish_migration": {"fail": "the cable is broken"}}}):
        racked.act(servers[2], "migrate", None)
        assert racked.settled(servers[2]) == ("ACTIVE", "host1")
    racked.act(servers[2], "migrate", None)
    assert racked.settled(servers[2])[0] == "VERIFY_RESIZE", racked.details(servers[2])
    racked.act(servers[2], "revertResize")
    assert racked.becomes(servers[2], "ACTIVE") == "host1"
    racked.client.delete([servers[2]])
    racked.agree()
    with pytest.raises(ApiError, match="409"):
        racked.client.call("DELETE", f"/os-services/{racked.service('host1')['id']}")
    rack.restart_host("host1")

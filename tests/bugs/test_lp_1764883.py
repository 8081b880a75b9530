# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1764883 and 2085975: a host comes back in the middle of an evacuation away from it, or right after it.

It took the servers for its own, or removed the wrong copy; or it asked another compute, which was itself, for what was
shared, and never started. Here a compute that starts asks the conductor alone, which has the books: what is on record
as evacuated is removed, what is still under way is left alone until it has ended. What cannot be removed yet keeps it
neither from starting nor from removing the rest.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import ApiError
from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack


def test_in_the_middle(rack: Rack, racked: Movers) -> None:
    server = racked.boot(host="host1")
    rack.hosts["host1"].kill()
    racked.force_down("host1")
    with racked.faults(server={"spawn": {"delay": 60}}):
        racked.evacuate(server, "host2")
        racked.reaches(server, "rebuilding")
        rack.restart_host("host1")
        # It has reported what it has, and nothing was touched.
        assert "host1/json" in racked.files(server)
        with pytest.raises(ApiError, match="409.*are being evacuated"):
            racked.force_down("host1", False)
    # The build that waits is given up with its process; another one takes the step up.
    rack.restart_host("host2")
    assert racked.settled(server) == ("ACTIVE", "host2")
    racked.only_on(server, "host2")
    racked.wait_until_in_use({"host2": 1})
    racked.agree()


def test_with_nobody_to_ask(rack: Rack, racked: Movers) -> None:
    server = racked.boot(host="host1")
    rack.hosts["host1"].kill()
    racked.force_down("host1")
    racked.evacuate(server, "host2")
    assert racked.settled(server) == ("ACTIVE", "host2")
    assert racked.used()["host1"] == 1
    with rack.cut_off("host2"), rack.cut_off("host3"):
        rack.restart_host("host1")
        racked.only_on(server, "host2")
        racked.wait_until_in_use({"host2": 1})
    racked.agree()


def test_what_cannot_be_removed(rack: Rack, racked: Movers) -> None:
    servers = [racked.boot(f"server-{number}", "host1") for number in range(2)]
    rack.hosts["host1"].kill()
    racked.force_down("host1")
    for server in servers:
        racked.evacuate(server, "host2")
        assert racked.settled(server) == ("ACTIVE", "host2")
    with racked.faults(host1={"clean": {"fail": "the disk is busy"}}):
        rack.restart_host("host1")
        assert racked.in_use() == {"host1": 2, "host2": 2}
    for server in servers:
        racked.only_on(server, "host2")
    racked.wait_until_in_use({"host2": 2})

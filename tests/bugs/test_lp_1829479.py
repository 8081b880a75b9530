# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1829479: a dead host whose servers were all evacuated cannot be removed, or leaves orphans.

What they held there was to be given back by a host that does not come back. Here the evacuations away from it end with
the service. Should the host return after all, it is a new one, and still knows what was evacuated from it.
"""

from __future__ import annotations

from tests.fixtures.client import wait_until_empty
from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack


def test_a_dead_host_is_removed(rack: Rack, racked: Movers) -> None:
    servers = [racked.boot(f"server-{number}", "host1") for number in range(2)]
    rack.hosts["host1"].kill()
    racked.force_down("host1")
    for server in servers:
        racked.evacuate(server)
    homes = {server: racked.settled(server)[1] for server in servers}
    assert "host1" not in homes.values()
    old = racked.service("host1")
    racked.client.call("DELETE", f"/os-services/{old['id']}")
    assert sum(racked.in_use().values()) == 2 and "host1" not in racked.used()
    assert [racked.migrations(server) for server in servers] == [[("evacuation", "completed")]] * 2
    racked.agree()

    rack.start_host("host1")
    wait_until_empty(lambda: [] if "host1" in racked.used() else ["not there yet"], 30)
    assert racked.service("host1")["id"] != old["id"]
    for server, home in homes.items():
        racked.only_on(server, home)
    assert racked.used()["host1"] == 0
    racked.agree()

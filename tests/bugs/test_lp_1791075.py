# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1791075: servers that are evacuated at the same time are pinned to the same CPUs.

The periodic audit overlooked servers that were being rebuilt, and gave what they had taken to the next one. Here a
place is taken in the books before anything is built, and nobody counts what there is by looking at servers.
"""

from __future__ import annotations

from tests.fixtures.auditing import audited
from tests.fixtures.client import at_once
from tests.fixtures.cloud import Cloud
from tests.fixtures.movers import Movers


def test_two_full_hosts_are_evacuated_onto_two_empty_ones(moving_hosts_running: Cloud, moving: Movers) -> None:
    servers = [moving.boot(f"server-{number}", f"host{number % 2 + 1}") for number in range(8)]
    for host in ("host1", "host2"):
        moving.force_down(host)
    with audited(moving_hosts_running) as looks, moving.faults(**{"*": {"spawn": {"delay": 0.3}}}):
        at_once(8, lambda number: moving.evacuate(servers[number]))
        places = [moving.settled(server) for server in servers]
    assert sorted(places) == [("ACTIVE", "host3")] * 4 + [("ACTIVE", "host4")] * 4
    assert len(looks) > 2 and set(looks) == {""}
    moving.wait_until_in_use({"host3": 4, "host4": 4})
    assert [moving.migrations(server) for server in servers] == [[("evacuation", "completed")]] * 8

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1714237 and 1715182: a live migration that is aborted leaves its destination charged.

Here the transaction that publishes it as cancelled gives the destination's half back.
"""

from __future__ import annotations

from tests.fixtures.client import wait_until_empty
from tests.fixtures.movers import Movers


def test_one_is_aborted_half_way(moving: Movers) -> None:
    server = moving.boot(host="host1")
    with moving.faults(server={"live_migrate": {"seconds": 3}}):
        moving.live_migrate(server, "host2")
        path = f"/servers/{server}/migrations/{moving.running(server)['id']}"

        def before_half() -> list[int]:
            found = moving.client.get(path)["migration"]
            left = int(found["memory_remaining_bytes"])
            return [left] if left > found["memory_total_bytes"] / 2 else []

        wait_until_empty(before_half, 20)
        assert moving.in_use() == {"host1": 1, "host2": 1}
        moving.client.call("DELETE", path)
        assert moving.settled(server) == ("ACTIVE", "host1")
    assert moving.migrations(server) == [("live-migration", "cancelled")]
    assert moving.in_use() == {"host1": 1}
    moving.only_on(server, "host1")
    assert moving.client.server(server)["OS-EXT-STS:power_state"] == 1
    moving.boot("whole", "host2", flavor=moving.client.flavor("whole", vcpus=4))
    moving.agree()

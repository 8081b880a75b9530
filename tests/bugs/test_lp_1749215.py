# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1749215: a resize that fails after it was handed to the source leaves its destination charged.

Nobody was left who would clean up. Here the operation has not ended before what it holds is given back: the server is
what and where it was, its destination and its project's quota have room again.
"""

from __future__ import annotations

from typing import Any

from tests.fixtures.movers import Movers


def in_quota(moving: Movers) -> dict[str, Any]:
    return dict(moving.client.get("/limits")["limits"]["absolute"])


def test_the_disks_cannot_be_copied(moving: Movers) -> None:
    server = moving.boot(host="host1")
    before = in_quota(moving)
    with moving.faults(server={"move_out": {"fail": "the copy of the disk broke off", "delay": 0.3}}):
        moving.act(server, "resize", {"flavorRef": moving.large})
        moving.reaches(server, "resize_migrating")
        assert in_quota(moving)["totalCoresUsed"] == before["totalCoresUsed"] + 1
        assert moving.settled(server) == ("ACTIVE", "host1")
    shown = moving.client.server(server)
    assert (shown["flavor"]["vcpus"], shown["OS-EXT-STS:power_state"]) == (1, 1)
    assert moving.migrations(server) == [("resize", "error")]
    assert "the copy of the disk broke off" in moving.details(server)
    assert moving.in_use() == {"host1": 1}
    assert in_quota(moving) == before
    moving.only_on(server, "host1")
    moving.agree()

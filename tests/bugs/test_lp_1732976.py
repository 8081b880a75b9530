# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1732976 (CVE-2017-17051): each rebuild charges the host once more, until it counts as full.

A rebuild with a new image went by the schedulers, and what they claimed was on top of what the server had. Here a
rebuild claims nothing: the server has its place already.
"""

from __future__ import annotations

from tests.fixtures.movers import Movers

TIMES = 12  # three times what the host has room for


def test_a_server_is_rebuilt_again_and_again(moving: Movers) -> None:
    server = moving.boot(host="host1")
    images = [moving.client.image(), moving.client.image("other", bytes(2048))]
    limits = moving.client.get("/limits")["limits"]["absolute"]
    for turn in range(TIMES):
        moving.act(server, "rebuild", {"imageRef": images[turn % 2]})
        assert moving.settled(server) == ("ACTIVE", "host1")
        assert moving.in_use() == {"host1": 1}
    assert moving.client.get("/limits")["limits"]["absolute"] == limits
    moving.agree()

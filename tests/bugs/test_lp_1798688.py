# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1798688: a server that is unshelved as soon as it is shown as offloaded is charged twice.

The state was published first and the charge dropped afterwards. Here both are one transaction.
"""

from __future__ import annotations

from tests.fixtures.movers import Movers


def test_it_is_unshelved_at_the_very_moment(moving: Movers) -> None:
    server = moving.boot(host="host1")
    for _round in range(3):
        moving.act(server, "shelve")
        while moving.client.server(server)["status"] != "SHELVED_OFFLOADED":
            assert sum(moving.in_use().values()) <= 1
        assert moving.in_use() == {}
        moving.act(server, "unshelve")
        while (shown := moving.client.server(server))["status"] != "ACTIVE" or shown["OS-EXT-STS:task_state"]:
            assert sum(moving.in_use().values()) <= 1
        host = moving.host_of(server)
        assert moving.in_use() == {host: 1}
        moving.agree()
    moving.only_on(server, host)

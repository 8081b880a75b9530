# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1713796 and 1862633: an unshelve that fails leaves its charge on the host where it failed.

Here each attempt holds a grant of its own, which goes with it; the server is offloaded again, and can be tried again.
"""

from __future__ import annotations

from tests.fixtures.movers import Movers


def test_it_fails_on_every_host(moving: Movers) -> None:
    server = moving.boot(host="host1")
    moving.act(server, "shelve")
    moving.becomes(server, "SHELVED_OFFLOADED")
    assert moving.in_use() == {}
    with moving.faults(server={"spawn": {"fail": "no space left"}}):
        moving.act(server, "unshelve")
        assert moving.settled(server)[0] == "SHELVED_OFFLOADED"
    assert "no space left" in moving.details(server)
    assert moving.in_use() == {}
    assert moving.files(server) == []
    moving.agree()
    moving.act(server, "unshelve")
    host = moving.becomes(server, "ACTIVE")
    assert moving.in_use() == {host: 1}
    moving.only_on(server, host)

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1558532: a member of an anti-affinity group cannot be resized on its own host.

The rule found a member there: the server itself. Here a member that moves is not in its own way.
"""

from __future__ import annotations

import pytest

from tests.fixtures.movers import Movers


@pytest.mark.parametrize("policy", ["anti-affinity", "affinity"])
@pytest.mark.parametrize("end", ["confirmResize", "revertResize"])
def test_a_member_is_resized_where_it_is(moving: Movers, policy: str, end: str) -> None:
    server = moving.boot("member", "host1", group=moving.client.group(policy))
    for host in ("host2", "host3", "host4"):
        moving.change_service(host, status="disabled")
    moving.act(server, "resize", {"flavorRef": moving.large})
    assert moving.settled(server) == ("VERIFY_RESIZE", "host1"), moving.details(server)
    moving.act(server, end)
    assert moving.becomes(server, "ACTIVE") == "host1"
    assert moving.in_use() == {"host1": 2 if end == "confirmResize" else 1}
    moving.agree()

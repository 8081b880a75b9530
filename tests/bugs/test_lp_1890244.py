# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1890244: a server whose group was deleted cannot be evacuated.

What was known of the server at its boot named the group, and the group was not found. Here the row knows of the group,
and whoever deletes that takes it out of the row.
"""

from __future__ import annotations

import pytest

from tests.fixtures.movers import Movers


@pytest.mark.parametrize("policy", ["affinity", "anti-affinity"])
def test_a_former_member_is_evacuated(moving: Movers, policy: str) -> None:
    group = moving.client.group(policy)
    server = moving.boot("former-member", "host1", group=group)
    moving.client.call("DELETE", f"/os-server-groups/{group}")
    moving.force_down("host1")
    moving.evacuate(server)
    status, host = moving.settled(server)
    assert status == "ACTIVE" and host != "host1", moving.details(server)
    moving.only_on(server, host)

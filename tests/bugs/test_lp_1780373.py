# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1780373: one request exceeds the quota of a group's members.

The group's members were counted before the request, and not with it. Here the request is refused as a whole, and
leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures.books import disagreements
from tests.fixtures.client import ApiError, Client
from tests.fixtures.cloud import Cloud


@pytest.fixture
def group_of_three(three_hosts: Cloud, client: Client) -> Iterator[str]:
    """A group that may have three members, in microversion 2.64's words."""
    group = client.group("soft-affinity")
    project = client.get(f"/os-server-groups/{group}")["server_group"]["project_id"]
    client.call("PUT", f"/os-quota-sets/{project}", {"quota_set": {"server_group_members": 3}})
    yield group
    client.call("DELETE", f"/os-quota-sets/{project}")


def test_five_members_at_once_with_a_quota_of_three(three_hosts: Cloud, client: Client, group_of_three: str) -> None:
    flavor = client.flavor()
    with pytest.raises(ApiError) as refused:
        client.boot("crowd", flavor, group_of_three, min_count=5)
    assert refused.value.status == 403
    assert not client.servers()
    assert not disagreements(three_hosts.database)

    client.boot("few", flavor, group_of_three, min_count=3)
    with pytest.raises(ApiError) as refused:
        client.boot("one-too-many", flavor, group_of_three)
    assert refused.value.status == 403
    servers = client.settle([server["id"] for server in client.servers()])
    assert [server["status"] for server in servers] == ["ACTIVE"] * 3

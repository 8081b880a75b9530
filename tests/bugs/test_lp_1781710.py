# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1781710: one request for several servers of an anti-affinity group puts some of them together.

The hosts' state was not brought up to date between the members of the request. Here each member that is placed counts
for the next one. Each server of such a request lives its own life: if there are fewer hosts than members, those that
have a place are ACTIVE, and the others say why they have none.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures import races
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud


def boot_three(client: Client, name: str) -> list[str]:
    """Ask for three members in one request; returns their ids."""
    group = client.group("anti-affinity")
    client.boot(name, client.flavor(), group, min_count=3, max_count=3)
    ids = [server["id"] for server in client.servers() if server["name"].startswith(name)]
    assert len(ids) == 3
    return ids


def test_three_members_on_three_hosts(three_hosts: Cloud, client: Client) -> None:
    servers = client.settle(boot_three(client, "three"))
    assert races.hosts(servers) == {"host1": 1, "host2": 1, "host3": 1}, races.faults(servers)
    assert not disagreements(three_hosts.database)


@pytest.fixture
def without_host3(three_hosts: Cloud, client: Client) -> Iterator[None]:
    (service,) = client.get("/os-services?binary=nova-compute&host=host3")["services"]
    client.call("PUT", f"/os-services/{service['id']}", {"status": "disabled"})
    yield
    client.call("PUT", f"/os-services/{service['id']}", {"status": "enabled"})


@pytest.mark.usefixtures("without_host3")
def test_three_members_on_two_hosts(three_hosts: Cloud, client: Client) -> None:
    servers = client.settle(boot_three(client, "two"))
    assert races.hosts(servers) == {"host1": 1, "host2": 1}
    (reason,) = races.faults(servers)
    assert "2 already with 1 member of the anti-affinity group" in reason
    assert not disagreements(three_hosts.database)

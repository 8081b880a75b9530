# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1423648, rcbops/rpc-openstack#1144: members of one affinity group that are booted at once come apart.

None of them finds a member to join, so each chooses for itself. Here the group's first grant that holds decides where
its home is; all who fit are there, and the others are told that it is full.
"""

from __future__ import annotations

from tests.fixtures import races
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud


def test_ten_first_members_at_once(large_hosts: Cloud, client: Client) -> None:
    flavor = client.flavor()
    for _round in range(3):
        servers = races.one_round(large_hosts, client, "affinity", 10, flavor)
        assert list(races.hosts(servers).values()) == [10], races.faults(servers)


def test_ten_first_members_and_room_for_four(three_hosts: Cloud, client: Client) -> None:
    flavor = client.flavor()
    for _round in range(3):
        servers = races.one_round(three_hosts, client, "affinity", 10, flavor)
        assert list(races.hosts(servers).values()) == [4]
        reasons = races.faults(servers)
        assert len(reasons) == 6
        assert all("2 not the home of the affinity group" in reason for reason in reasons), reasons

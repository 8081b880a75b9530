# SPDX-License-Identifier: Apache-2.0
"""The wiki's SchedulerRaceReduction: two servers of 2 GiB are sent to a host with 3 GiB free.

Each was checked against the same picture, and nobody checks at the host one after the other. Here one is ACTIVE, and
the other is told the truth: no host has room.
"""

from __future__ import annotations

from tests.fixtures import races
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud


def test_two_servers_of_2_gib_and_3_gib_free(three_hosts: Cloud, client: Client) -> None:
    whole, quarter = client.flavor("4-gib", ram=4096), client.flavor("1-gib", ram=1024)
    half = client.flavor("2-gib", ram=2048)
    fill = [client.boot(host, whole, availability_zone=f"nova:{host}") for host in ("host2", "host3")]
    fill.append(client.boot("host1", quarter, availability_zone="nova:host1"))
    assert {server["status"] for server in client.settle(fill)} == {"ACTIVE"}

    for _round in range(5):
        pair = client.boot_at_once(2, half)
        servers = client.settle(pair)
        assert races.hosts(servers) == {"host1": 1}
        (reason,) = races.faults(servers)
        assert "No valid host" in reason and "2048 MiB" in reason
        assert races.attempts(client, servers) == 1
        assert not disagreements(three_hosts.database)
        client.delete(pair)

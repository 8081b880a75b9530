# SPDX-License-Identifier: Apache-2.0
"""OpenNebula/one#7382: one machine that cannot be deployed blocks all others on its host.

The scheduler retried the head of the line for ever, with one action a host at a time. Here builds on a host run side by
side, and what cannot be built ends with its reason while the others go on.
"""

from __future__ import annotations

from tests.fixtures import faults, races
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud

GOOD = 20


def test_twenty_good_servers_behind_a_bad_one(large_hosts: Cloud, client: Client) -> None:
    flavor = client.flavor()
    # Longer than all the others take together.
    bad_luck = {"bad": {"spawn": {"delay": 8, "fail": "it cannot be deployed"}}}
    with faults.injected(large_hosts.directory, bad_luck):
        bad = client.boot("bad", flavor, availability_zone="nova:host1")
        good = [client.boot(f"good-{number}", flavor, availability_zone="nova:host1") for number in range(GOOD)]
        servers = client.settle(good)
        assert races.hosts(servers) == {"host1": GOOD}, races.faults(servers)
        assert client.server(bad)["status"] == "BUILD"
        (settled,) = client.settle([bad])
    assert settled["status"] == "ERROR"
    assert "host1: it cannot be deployed" in settled["fault"]["message"]

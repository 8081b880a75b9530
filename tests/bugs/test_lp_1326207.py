# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1326207: a server is rescheduled without end, since the record of its tries got lost between services.

Here the tries are a part of the operation's row: when all hosts fail, exactly max_attempts of them have been tried,
the fault names each with its reason, and nothing is held any more.
"""

from __future__ import annotations

from tests.fixtures import faults, races
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud

MAX_ATTEMPTS = 3


def test_all_hosts_fail(ten_hosts: Cloud, client: Client) -> None:
    with faults.injected(ten_hosts.directory, {"*": {"spawn": {"fail": "the disk is broken"}}}):
        server = client.boot("hopeless", client.flavor())
        (settled,) = client.settle([server])
    assert settled["status"] == "ERROR"
    assert settled["OS-EXT-SRV-ATTR:host"] is None
    assert settled["fault"]["message"].count("the disk is broken") == MAX_ATTEMPTS
    assert races.attempts(client, [settled]) == MAX_ATTEMPTS
    assert not disagreements(ten_hosts.database)
    for hypervisor in client.get("/os-services?binary=nova-compute")["services"]:
        assert hypervisor["status"] == "enabled"

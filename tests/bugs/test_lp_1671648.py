# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1671648: a build that failed on its host is not tried on another.

A new way of building forgot to pass on what a retry needs to know. Here a failed attempt goes back to the schedulers
with the hosts to avoid, and the server's actions show both attempts.
"""

from __future__ import annotations

from tests.fixtures import faults
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud


def test_the_first_host_fails_and_the_second_does_not(three_hosts: Cloud, client: Client) -> None:
    flavor = client.flavor()
    # host1 is the emptiest, so it is tried first.
    fill = [client.boot(f"fill-{host}", flavor, availability_zone=f"nova:{host}") for host in ("host2", "host3")]
    client.settle(fill)
    with faults.injected(three_hosts.directory, {"host1": {"spawn": {"fail": "no space left on device"}}}):
        server = client.boot("second-try", flavor)
        (settled,) = client.settle([server])

    assert settled["status"] == "ACTIVE", settled.get("fault")
    assert settled["OS-EXT-SRV-ATTR:host"] in ("host2", "host3")
    (action,) = client.get(f"/servers/{server}/os-instance-actions")["instanceActions"]
    shown = client.get(f"/servers/{server}/os-instance-actions/{action['request_id']}")["instanceAction"]
    builds = [event for event in shown["events"] if event["event"] == "compute__do_build_and_run_instance"]
    results = sorted((build["result"], build["host"]) for build in builds)
    assert results == [("Error", "host1"), ("Success", settled["OS-EXT-SRV-ATTR:host"])]
    assert not disagreements(three_hosts.database)

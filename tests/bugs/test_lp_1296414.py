# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1296414 and 1493694: a crash in the middle of a delete leaves quota in use for a server that is gone.

Row and quota were written one after the other, and the crash came in between. Here they are one transaction, and the
cloud that starts again finishes the deletes that it finds.
"""

from __future__ import annotations

from tests.fixtures import faults, races
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client, wait_until_empty
from tests.fixtures.cloud import Cloud, wait_for


def test_a_power_cut_in_the_middle_of_deletes(three_hosts: Cloud, client: Client) -> None:
    ids = client.boot_at_once(12, client.flavor())
    assert not races.faults(client.settle(ids))
    # host1 is done at once, host2 later, host3 not before the power is cut.
    slowly: faults.Faults = {"host2": {"destroy": {"delay": 0.3}}, "host3": {"destroy": {"delay": 60}}}
    with faults.injected(three_hosts.directory, slowly):
        for server in ids:
            client.call("DELETE", f"/servers/{server}")
        wait_for(lambda: len(client.servers()) < len(ids), 20)
        three_hosts.processes[0].kill()
    assert not disagreements(three_hosts.database)
    three_hosts.processes[0].start_again()
    three_hosts.wait_until_up()
    wait_until_empty(client.servers, 30)
    shown = client.get("/limits")["limits"]["absolute"]
    assert (shown["totalInstancesUsed"], shown["totalCoresUsed"], shown["totalRAMUsed"]) == (0, 0, 0)
    assert not disagreements(three_hosts.database)
    wait_until_empty(lambda: list((three_hosts.directory / "state" / "fake-domains").rglob("*.json")), 10)

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1882608, 1914777 and 1917945: a server that is deleted while it boots.

The boot finds its row gone or stale at one step or another, raises what nobody expects, and leaves the server in ERROR
or something of it on a host. Here a delete ends the boot's operation, whatever step it has come to, and takes with it
what there is.
"""

from __future__ import annotations

import random
import time

from tests.fixtures import faults
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client, wait_until_empty
from tests.fixtures.cloud import Cloud

MOMENTS = 30
# Longer than a boot takes here, so that deletes come before, in and after every step.
LONGEST = 0.4


def test_deletes_at_many_moments_of_a_boot(three_hosts: Cloud, client: Client) -> None:
    flavor = client.flavor()
    moments = [LONGEST * number / MOMENTS for number in range(MOMENTS)]
    random.Random(1882608).shuffle(moments)
    ids: list[str] = []
    with faults.injected(three_hosts.directory, {"*": {"spawn": {"delay": 0.1}}}):
        for moment in moments:
            ids.append(client.boot("short-lived", flavor))
            time.sleep(moment)
            client.call("DELETE", f"/servers/{ids[-1]}")
        wait_until_empty(lambda: [f"{s['id']} {s['status']}" for s in client.servers()], 30)
    assert not disagreements(three_hosts.database)
    wait_until_empty(lambda: list((three_hosts.directory / "state" / "fake-domains").rglob("*.json")), 10)
    shown = client.get("/limits")["limits"]["absolute"]
    assert (shown["totalInstancesUsed"], shown["totalCoresUsed"], shown["totalRAMUsed"]) == (0, 0, 0)
    deleted = client.get("/servers/detail?all_tenants=1&deleted=true&limit=1000")["servers"]
    assert {server["status"] for server in deleted if server["id"] in ids} == {"DELETED"}

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1670627 and 1678326: quota drifts when servers that failed to boot are deleted.

What a boot had taken was given back by two parts of the system, or by none, depending on how far it had come. Here a
server's quota is taken with its row and given back with it, whatever became of it in between.
"""

from __future__ import annotations

from tests.fixtures import faults
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud


def usage(client: Client) -> tuple[int, int, int]:
    shown = client.get("/limits")["limits"]["absolute"]
    return shown["totalInstancesUsed"], shown["totalCoresUsed"], shown["totalRAMUsed"]


def test_fail_and_delete_again_and_again(ten_hosts: Cloud, client: Client) -> None:
    broken, huge = client.flavor(), client.flavor("huge", vcpus=64)
    assert usage(client) == (0, 0, 0)
    with faults.injected(ten_hosts.directory, {"*": {"spawn": {"fail": "the disk is broken"}}}):
        for _round in range(5):
            ids = [client.boot("huge", huge) for _ in range(2)] + [client.boot("broken", broken) for _ in range(3)]
            servers = client.settle(ids)
            assert {server["status"] for server in servers} == {"ERROR"}
            assert usage(client) == (5, 2 * 64 + 3, 5 * 512)
            client.delete(ids)
            assert usage(client) == (0, 0, 0)
    assert not disagreements(ten_hosts.database)

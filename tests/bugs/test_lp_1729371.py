# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1729371: a periodic task removes claims that were made a moment ago.

It took "there is no such instance on the host" for "the instance is gone", in the moment between a claim and the row
that proves it. Here a grant ends by its own time or by its owner, so that a reaper that runs all the time takes none.
"""

from __future__ import annotations

from tests.fixtures import races
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud

COUNT = 200


def test_creates_under_a_restless_reaper(large_hosts: Cloud, client: Client) -> None:
    log = large_hosts.processes[0].log
    begin = log.stat().st_size
    flavor = client.flavor()
    ids: list[str] = []
    for _wave in range(COUNT // 20):
        ids += client.boot_at_once(20, flavor)
    servers = client.settle(ids)
    assert sum(races.hosts(servers).values()) == COUNT, races.faults(servers)
    assert not disagreements(large_hosts.database)
    lines = log.read_text()[begin:].splitlines()
    # On a slow machine the impatience of this cloud places a build twice; the second message finds it done.
    lines = [line for line in lines if "reason=the operation has ended" not in line]
    assert not [line for line in lines if "grants expired" in line or "grant refused" in line]

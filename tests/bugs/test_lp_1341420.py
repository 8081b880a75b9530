# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1341420: the last free slots cannot be had, though they are there.

A scheduler reads what is free, chooses, and somebody else writes the use down later; schedulers that choose meanwhile
choose the same slot, and the retries of those that lose run out. Here every slot is taken by the first attempt at
building: a lost race costs a fall-over, at most one a host, and no build.
"""

from __future__ import annotations

import re

from tests.fixtures import races
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud


def test_ten_creates_get_the_ten_last_slots(ten_hosts: Cloud, client: Client) -> None:
    whole_host = client.flavor("whole", vcpus=4)
    for _round in range(3):
        servers = races.one_round(ten_hosts, client, None, 10, whole_host)
        assert sorted(races.hosts(servers).values()) == [1] * 10, races.faults(servers)
    fall_overs = [int(count) for count in re.findall(r"fell over .* fall_overs=(\d+)", ten_hosts.logs())]
    assert max(fall_overs, default=0) <= 10

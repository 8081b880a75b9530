# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1728722, 1719933 and story 2006467: conflicts on a large host reach the users.

All writers that meet on one host's record but the first are told to try again, and give up after few tries. Here
writers on one host queue for its row, and everybody gets what there is room for.
"""

from __future__ import annotations

from collections import Counter

from tests.fixtures import races
from tests.fixtures.books import disagreements
from tests.fixtures.client import ApiError, Client, at_once
from tests.fixtures.cloud import Cloud

COUNT = 50


def test_fifty_creates_onto_one_host(large_hosts: Cloud, client: Client) -> None:
    flavor = client.flavor()
    client.image()
    ids: list[str] = []
    refusals: Counter[int] = Counter()

    def boot(number: int) -> None:
        try:
            ids.append(client.boot(f"server-{number}", flavor, availability_zone="nova:host2"))
        except ApiError as error:
            refusals[error.status] += 1

    at_once(COUNT, boot)
    assert not refusals
    servers = client.settle(ids)
    assert races.hosts(servers) == {"host2": COUNT}, races.faults(servers)
    assert not disagreements(large_hosts.database)

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1795992: a request for a thousand servers times out, and is carried out up to three times.

The caller repeats a call whose first run still goes on, and every run claims. Here whoever schedules a server again
replaces its grant, and what an earlier run comes up with later is found out of date when it is claimed: each server is
booked and built once.
"""

from __future__ import annotations

from collections import Counter

import pytest
import sqlalchemy as sa

from nova_lite.db.models import allocations, grants
from tests.fixtures import races
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client, wait_until_empty
from tests.fixtures.cloud import Cloud

COUNT = 500


@pytest.mark.long
def test_500_servers_and_a_scheduler_call_that_times_out(large_hosts: Cloud, client: Client) -> None:
    log = large_hosts.processes[0].log
    begin = log.stat().st_size
    client.boot("one-of-many", client.flavor(), min_count=COUNT)
    ids = [server["id"] for server in client.servers()]
    assert len(ids) == COUNT
    servers = client.settle(ids, patience=120)
    assert "no scheduler answered" in log.read_text()[begin:], "no call timed out"
    assert sum(races.hosts(servers).values()) == COUNT, races.faults(servers)

    engine = sa.create_engine(large_hosts.database)
    with engine.connect() as conn:
        booked = Counter(conn.execute(sa.select(allocations.c.consumer)).scalars())
    assert booked == Counter(ids)
    domains = Counter(path.stem for path in (large_hosts.directory / "state" / "fake-domains").rglob("*.json"))
    assert domains == Counter(ids)
    assert not disagreements(large_hosts.database)

    # What the runs that were given up have granted since has an end too.
    def left() -> list[str]:
        with engine.connect() as conn:
            return list(conn.execute(sa.select(grants.c.consumer)).scalars())

    wait_until_empty(left, 20)
    engine.dispose()

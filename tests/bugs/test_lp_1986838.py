# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1986838: a server becomes ACTIVE without what it asked for, since a failed claim is only logged.

Here nothing is built without a claim that was committed: as long as claims fail, the server waits; when they succeed
again, it is built, once.
"""

from __future__ import annotations

import sqlalchemy as sa

from tests.fixtures import races
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud, wait_for

REFUSE = "CREATE TRIGGER refuse BEFORE INSERT ON allocations BEGIN SELECT RAISE(ABORT, 'no claim today'); END"


def test_the_claim_fails(three_hosts: Cloud, client: Client) -> None:
    log = three_hosts.processes[0].log
    begin = log.stat().st_size
    engine = sa.create_engine(three_hosts.database)
    with engine.begin() as conn:
        conn.exec_driver_sql(REFUSE)
    try:
        server = client.boot("unclaimed", client.flavor())
        wait_for(lambda: b"no claim today" in log.read_bytes()[begin:], 20, three_hosts.logs)
        waiting = client.server(server)
        assert waiting["status"] == "BUILD"
        assert not list((three_hosts.directory / "state" / "fake-domains").rglob("*.json"))
    finally:
        with engine.begin() as conn:
            conn.exec_driver_sql("DROP TRIGGER refuse")
        engine.dispose()
    (settled,) = client.settle([server])
    assert settled["status"] == "ACTIVE", settled
    assert races.hosts([settled])
    assert not disagreements(three_hosts.database)

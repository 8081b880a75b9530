# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1454451: an audit runs between a claim and its being written, and gives the place away again.

The claim was written down after its lock had been let go. Here the allocation is committed before anything is built:
at every moment each domain on a host has its allocation, and the books agree.
"""

from __future__ import annotations

import threading

import sqlalchemy as sa

from nova_lite.db.models import allocations
from tests.fixtures import faults, races
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud


def test_an_audit_while_servers_are_built(three_hosts: Cloud, client: Client) -> None:
    domains = three_hosts.directory / "state" / "fake-domains"
    engine = sa.create_engine(three_hosts.database)
    wrong: list[str] = []
    unfinished = 0
    done = threading.Event()

    def audit() -> None:
        nonlocal unfinished
        while not done.wait(0.02):
            here = {path.stem for path in domains.rglob("*.json")}
            with engine.connect() as conn:
                booked = set(conn.execute(sa.select(allocations.c.consumer)).scalars())
            wrong.extend(f"domain {uuid} has no allocation" for uuid in here - booked)
            wrong.extend(disagreements(three_hosts.database))
            unfinished += bool(booked - here)

    auditor = threading.Thread(target=audit)
    with faults.injected(three_hosts.directory, {"*": {"spawn": {"delay": 1.0}}}):
        auditor.start()
        ids = client.boot_at_once(12, client.flavor())
        servers = client.settle(ids)
        done.set()
        auditor.join()
    engine.dispose()
    assert not races.faults(servers)
    assert not wrong
    assert unfinished, "no audit saw a build between its claim and its domain"

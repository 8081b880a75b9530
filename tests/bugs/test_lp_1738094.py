# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1738094: a group of many members overflows a field of 64 kB, and its list of members is stale.

The members were kept with each request, as they were when it was made. Here who is in a group is what the servers' rows
say, read whenever somebody asks.
"""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from nova_lite.db.models import instances
from tests.fixtures import races
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud, wait_for

MANY = 2000


def test_a_group_of_two_thousand(three_hosts: Cloud, client: Client) -> None:
    group = client.group("soft-anti-affinity")
    flavor = client.flavor()
    first = client.boot("first", flavor, group)
    client.settle([first])
    engine = sa.create_engine(three_hosts.database)
    strangers = [str(uuid.uuid4()) for _ in range(MANY)]
    with engine.begin() as conn:
        # Rows like the first one's, of a project of their own, on no host: members all the same.
        row = dict(conn.execute(sa.select(instances).where(instances.c.uuid == first)).one()._mapping)
        row |= {"id": None, "host": None, "node": None, "node_id": None, "project_id": "many"}
        conn.execute(sa.insert(instances), [{**row, "uuid": stranger} for stranger in strangers])
    try:
        last = client.boot("last", flavor, group)
        wait_for(lambda: client.server(last)["status"] != "BUILD", 30)
        assert len(races.hosts([client.server(first), client.server(last)])) == 2
        assert set(client.get(f"/os-server-groups/{group}")["server_group"]["members"]) == {first, last, *strangers}
        client.call("DELETE", f"/servers/{last}")
        wait_for(lambda: last not in [server["id"] for server in client.servers()], 30)
        assert last not in client.get(f"/os-server-groups/{group}")["server_group"]["members"]
    finally:
        with engine.begin() as conn:
            conn.execute(sa.delete(instances).where(instances.c.uuid.in_(strangers)))
        engine.dispose()
    assert client.get(f"/os-server-groups/{group}")["server_group"]["members"] == [first]

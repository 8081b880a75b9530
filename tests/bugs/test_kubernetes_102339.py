# SPDX-License-Identifier: Apache-2.0
"""kubernetes/kubernetes#102339: a node that was removed and comes back under its name is never used.

A scheduler's cache kept the old entry, and what had been on it. Here a host that is removed through the API and
registers again is a new host under an old name, for schedulers that have seen the old one too.
"""

from __future__ import annotations

import sqlalchemy as sa

from nova_lite.db import compute_services
from nova_lite.db.models import compute_nodes, grants
from tests.fixtures import races
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.inside import InsideCloud
from tests.fixtures.scheduling import Scheduling


def test_a_host_is_removed_and_comes_back(inside: InsideCloud, client: Client) -> None:
    flavor = client.flavor()
    # Every scheduler knows all hosts, full of servers.
    ids = client.boot_at_once(12, flavor)
    assert not races.faults(client.settle(ids))
    client.delete(ids)
    (old,) = client.get("/os-services?binary=nova-compute&host=host1")["services"]
    client.call("DELETE", f"/os-services/{old['id']}")
    (refused,) = client.settle([client.boot("too-early", client.flavor("whole", vcpus=4), min_count=1)])
    assert refused["OS-EXT-SRV-ATTR:host"] in ("host2", "host3")
    client.delete([refused["id"]])

    inside.compute._register()
    (new,) = client.get("/os-services?binary=nova-compute&host=host1")["services"]
    assert new["id"] != old["id"]
    ids = client.boot_at_once(12, flavor)
    servers = client.settle(ids)
    assert races.hosts(servers) == {"host1": 4, "host2": 4, "host3": 4}, races.faults(servers)
    assert not disagreements(inside.database)
    client.delete(ids)


def test_grants_of_the_old_host_do_not_burden_the_new_one(scheduling: Scheduling) -> None:
    old = scheduling.add_host("host1")
    scheduling.add_host("host2")
    placer = scheduling.placer()
    # The host dies with four grants that nobody will claim, and they expire.
    lost = placer.place([scheduling.request(host="host1") for _ in range(4)])
    assert [selection.host for selection in lost] == ["host1"] * 4
    past = sa.update(grants).values(expires_at=grants.c.created_at)
    service_id = sa.select(compute_nodes.c.service_id).where(compute_nodes.c.id == old)

    def remove(conn: sa.Connection) -> None:
        conn.execute(past)
        compute_services.delete(conn, conn.execute(service_id).scalar_one())

    scheduling.db.write(remove)
    new = scheduling.add_host("host1")
    assert new != old

    hosts = [scheduling.boot(placer, scheduling.request()) for _ in range(8)]
    assert sorted(hosts) == ["host1"] * 4 + ["host2"] * 4
    # A claim of the old grant that was still on its way is refused, and the audit has nothing to say.
    assert not scheduling.consume(lost[0]).granted
    assert not disagreements(scheduling.url)

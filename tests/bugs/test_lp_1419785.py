# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1419785 and 1853009: a compute that starts under another name removes all its guests, or another's record.

Its guests seemed to have been evacuated, since their host had another name; and a manager that had owned a record once
deleted it from under its new owner. Here a host is who its disk says it is: a compute whose name and identity do not
go together refuses to start, and nothing is touched.
"""

from __future__ import annotations

import dataclasses

import pytest

from nova_lite import exception
from nova_lite.db import registry
from nova_lite.db.models import compute_nodes, services
from nova_lite.objects.node import NodeInventory
from nova_lite.objects.resources import Resources
from tests.fixtures.cloud import wait_for
from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack
from tests.fixtures.scheduling import Scheduling

SWAPPED = {"host1": "host2", "host2": "host1"}


def test_two_hosts_swap_their_names(rack: Rack, racked: Movers) -> None:
    servers = {host: racked.boot(f"server-{host}", host) for host in SWAPPED}
    before = {host: racked.service(host)["id"] for host in SWAPPED}
    files = {host: racked.files(server) for host, server in servers.items()}
    for host in SWAPPED:
        rack.hosts[host].kill()
    for host, other in SWAPPED.items():
        state_path = {"DEFAULT": {"state_path": str(rack.directory / f"state-of-{other}")}}
        started = rack.start_host(host, state_path)
        wait_for(lambda started=started: started.process.poll() is not None, 30, started.log.read_text)  # type: ignore[misc]
        assert started.process.returncode == 1
        assert "says that its identity is" in started.log.read_text()
    assert {host: racked.service(host)["id"] for host in SWAPPED} == before
    assert {host: racked.files(server) for host, server in servers.items()} == files
    racked.agree()
    for host in SWAPPED:
        rack.start_host(host)
    rack.wait_until_hosts_are_up(list(SWAPPED))
    for host, server in servers.items():
        assert racked.settled(server) == ("ACTIVE", host)
        racked.only_on(server, host)


def test_a_host_gets_a_new_name(scheduling: Scheduling) -> None:
    node = NodeInventory("11111111-1111-4111-8111-111111111111", "old", "old", Resources(4, 4096, 100))

    def register(inventory: NodeInventory) -> None:
        scheduling.db.write(
            lambda conn: registry.register_node(
                conn, registry.register_service(conn, registry.COMPUTE, inventory.host, inventory.host), inventory
            )
        )

    def rows() -> list[tuple[str, ...]]:
        return scheduling.db.read(
            lambda conn: [
                *(tuple(row) for row in conn.execute(compute_nodes.select())),
                *(tuple(row) for row in conn.execute(services.select())),
            ]
        )

    register(node)
    before = rows()
    with pytest.raises(exception.Conflict, match="If the host was renamed, give it back its name"):
        register(dataclasses.replace(node, host="new", node="new"))
    with pytest.raises(exception.Conflict, match="delete the old compute service first"):
        register(dataclasses.replace(node, uuid="22222222-2222-4222-8222-222222222222"))
    assert rows() == before

# SPDX-License-Identifier: Apache-2.0
"""Which services and nodes there are, and that they are alive: registration and heartbeats, by the database's clock."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db.clock import now
from nova_lite.db.models import compute_nodes, services
from nova_lite.objects.node import NodeInventory, NodeRecord

API, CONDUCTOR, SCHEDULER, COMPUTE = "nova-osapi_compute", "nova-conductor", "nova-scheduler", "nova-compute"


def register_service(conn: sa.Connection, binary: str, host: str, server: str) -> int:
    """Make the service's row if there is none, and mark it as seen; return its id.

    The unique key on (binary, host) decides between two that register at once: the loser's transaction fails with
    DBDuplicateEntry and is to be run again.
    """
    mine = sa.and_(services.c.binary == binary, services.c.host == host)
    found = conn.execute(sa.select(services.c.id).where(mine).with_for_update()).scalar_one_or_none()
    if found is None:
        values = {"uuid": str(uuid.uuid4()), "binary": binary, "host": host, "server": server}
        return _inserted(conn, services, values)
    conn.execute(sa.update(services).where(services.c.id == found).values(server=server, last_seen_at=now()))
    return int(found)


def _inserted(conn: sa.Connection, table: sa.Table, values: dict[str, Any]) -> int:
    key = conn.execute(sa.insert(table).values(**values)).inserted_primary_key
    return int(key[0]) if key else 0


def heartbeat(conn: sa.Connection, binary: str, hosts: Sequence[str]) -> int:
    """Say that the services are alive, one statement for all hosts; return how many rows there are of them."""
    return conn.execute(
        sa.update(services)
        .where(services.c.binary == binary, services.c.host.in_(hosts))
        .values(last_seen_at=now(), report_count=services.c.report_count + 1, updated_at=services.c.updated_at)
    ).rowcount


def register_node(conn: sa.Connection, service_id: int, inventory: NodeInventory) -> NodeRecord:
    """Make the node's row or bring it up to date; writes nothing if nothing changed.

    :raises Conflict: the host's name belongs to a node with another identity, or the identity to another host.
    """
    columns = _columns(inventory)
    same = sa.or_(
        compute_nodes.c.uuid == inventory.uuid,
        sa.and_(compute_nodes.c.host == inventory.host, compute_nodes.c.node == inventory.node),
    )
    rows = conn.execute(sa.select(compute_nodes).where(same).order_by(compute_nodes.c.id).with_for_update()).all()
    if not rows:
        values = {**columns, "uuid": inventory.uuid, "service_id": service_id}
        return NodeRecord(_inserted(conn, compute_nodes, values), service_id, inventory.host, inventory.node)
    row = rows[0]
    if len(rows) > 1 or (row.uuid, row.host, row.node) != (inventory.uuid, inventory.host, inventory.node):
        raise exception.Conflict(
            f"Node {inventory.node} of host {inventory.host} says that its identity is {inventory.uuid}, but on record "
            f"are {', '.join(f'{r.host}/{r.node} as {r.uuid}' for r in rows)}. If the host was renamed, give it back "
            "its name; if its disk was replaced, delete the old compute service first."
        )
    changed = {name: value for name, value in columns.items() if row._mapping[name] != value}
    if changed or row.service_id != service_id:
        statement = sa.update(compute_nodes).where(compute_nodes.c.id == row.id)
        conn.execute(statement.values(**changed, service_id=service_id, revision=compute_nodes.c.revision + 1))
    return NodeRecord(row.id, service_id, inventory.host, inventory.node)


def _columns(inventory: NodeInventory) -> dict[str, Any]:
    return {
        "host": inventory.host,
        "node": inventory.node,
        "hypervisor_type": inventory.hypervisor_type,
        "hypervisor_version": inventory.hypervisor_version,
        "host_ip": inventory.host_ip,
        "cpu_info": json.dumps(inventory.cpu_info, sort_keys=True),
        "architectures": json.dumps(list(inventory.architectures)),
        "vm_modes": json.dumps(list(inventory.vm_modes)),
        "total_vcpus": inventory.total.vcpus,
        "total_memory_mb": inventory.total.memory_mb,
        "total_disk_gb": inventory.total.disk_gb,
        "reserved_vcpus": inventory.reserved.vcpus,
        "reserved_memory_mb": inventory.reserved.memory_mb,
        "reserved_disk_gb": inventory.reserved.disk_gb,
        "cpu_allocation_ratio": inventory.cpu_allocation_ratio,
        "ram_allocation_ratio": inventory.ram_allocation_ratio,
        "disk_allocation_ratio": inventory.disk_allocation_ratio,
    }


def compute_servers(conn: sa.Connection, hosts: Sequence[str], down_time: float) -> dict[str, tuple[str, bool]]:
    """Return host -> (name of its RPC server, whether it is up) of the compute services on the hosts."""
    alive = sa.and_(services.c.last_seen_at > now(-down_time), services.c.forced_down.is_(False))
    statement = sa.select(services.c.host, services.c.server, alive).where(
        services.c.binary == COMPUTE, services.c.host.in_(hosts)
    )
    return {row[0]: (row[1], bool(row[2])) for row in conn.execute(statement)}


def fenced(conn: sa.Connection, hosts: Sequence[str]) -> set[str]:
    """Return those of the hosts that somebody has forced down, and so made sure that nothing runs there."""
    forced = sa.and_(services.c.binary == COMPUTE, services.c.host.in_(hosts), services.c.forced_down.is_(True))
    return set(conn.execute(sa.select(services.c.host).where(forced)).scalars())


def hosts_of_nodes(conn: sa.Connection, hosts: Sequence[str]) -> dict[str, str]:
    """Return node -> host of the nodes of the hosts."""
    statement = sa.select(compute_nodes.c.node, compute_nodes.c.host).where(compute_nodes.c.host.in_(hosts))
    return dict(conn.execute(statement).all())


def count_build_failure(conn: sa.Connection, node_id: int, threshold: int) -> bool:
    """Count one more build that failed on the node, and disable its service at the threshold (0: never).

    :returns: whether the service was disabled now.
    """
    conn.execute(
        sa.update(compute_nodes)
        .where(compute_nodes.c.id == node_id)
        .values(failed_builds=compute_nodes.c.failed_builds + 1)
    )
    node = conn.execute(
        sa.select(compute_nodes.c.failed_builds, compute_nodes.c.service_id).where(compute_nodes.c.id == node_id)
    ).one()
    if not threshold or node.failed_builds < threshold:
        return False
    reason = f"Disabled after {node.failed_builds} builds failed in a row; enable it when the cause is mended."
    disabled = conn.execute(
        sa.update(services)
        .where(services.c.id == node.service_id, services.c.disabled.is_(False))
        .values(disabled=True, disabled_reason=reason)
    )
    if not disabled.rowcount:
        return False
    mine = sa.update(compute_nodes).where(compute_nodes.c.service_id == node.service_id)
    conn.execute(mine.values(revision=compute_nodes.c.revision + 1))
    return True

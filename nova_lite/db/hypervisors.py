# SPDX-License-Identifier: Apache-2.0
"""Hypervisors: the compute nodes with their services, as operators see them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db.compute_services import is_up
from nova_lite.db.models import compute_nodes, instances, services


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """A node. Amounts are as its host reported them; used ones are the sum of its allocations."""

    id: int
    uuid: str
    host: str
    node: str
    hypervisor_type: str
    hypervisor_version: int
    host_ip: str
    cpu_info: dict[str, Any]
    total_vcpus: int
    total_memory_mb: int
    total_disk_gb: int
    reserved_vcpus: int
    reserved_memory_mb: int
    reserved_disk_gb: int
    used_vcpus: int
    used_memory_mb: int
    used_disk_gb: int
    instances: int
    building: int
    service_id: int
    service_uuid: str
    disabled: bool
    disabled_reason: str | None
    up: bool


@dataclass(frozen=True, slots=True)
class Server:
    uuid: str
    name: str


def _select(down_time: float) -> sa.Select[Any]:
    columns = [compute_nodes.c[name] for name in Hypervisor.__dataclass_fields__ if name in compute_nodes.c]
    return sa.select(
        *columns,
        services.c.uuid.label("service_uuid"),
        services.c.disabled,
        services.c.disabled_reason,
        sa.case((is_up(down_time), 1), else_=0).label("up"),
    ).join_from(compute_nodes, services, services.c.id == compute_nodes.c.service_id)


def _hypervisor(row: Any) -> Hypervisor:
    return Hypervisor(**{**row._mapping, "cpu_info": json.loads(row.cpu_info), "up": bool(row.up)})


def get(conn: sa.Connection, down_time: float, which: int | str) -> Hypervisor:
    """Return a hypervisor by its id or, if which is text, by its uuid.

    :raises ComputeNodeNotFound: there is none.
    """
    column = compute_nodes.c.id if isinstance(which, int) else compute_nodes.c.uuid
    row = conn.execute(_select(down_time).where(column == which)).first()
    if row is None:
        raise exception.ComputeNodeNotFound(node=which)
    return _hypervisor(row)


def search(
    conn: sa.Connection,
    down_time: float,
    pattern: str | None = None,
    limit: int | None = None,
    marker: int | str | None = None,
) -> list[Hypervisor]:
    """List hypervisors, the oldest first.

    :param pattern: a part of their host names.
    :param marker: the id or uuid after which the list begins.
    :raises BadRequest: the marker is none.
    """
    statement = _select(down_time)
    if pattern is not None:
        statement = statement.where(compute_nodes.c.node.contains(pattern, autoescape=True))
    if marker is not None:
        try:
            after = get(conn, down_time, marker).id
        except exception.ComputeNodeNotFound:
            raise exception.BadRequest(f"Marker {marker} could not be found.")
        statement = statement.where(compute_nodes.c.id > after)
    return [_hypervisor(row) for row in conn.execute(statement.order_by(compute_nodes.c.id).limit(limit))]


def servers(conn: sa.Connection, node_ids: Sequence[int]) -> dict[int, list[Server]]:
    """Return node id -> the servers on it; a node without any is not there."""
    found: dict[int, list[Server]] = {}
    if node_ids:
        statement = (
            sa.select(instances.c.node_id, instances.c.uuid, instances.c.name)
            .where(instances.c.node_id.in_(node_ids), instances.c.deleted == 0)
            .order_by(instances.c.id)
        )
        for node_id, uuid, name in conn.execute(statement):
            found.setdefault(node_id, []).append(Server(uuid, name))
    return found

# SPDX-License-Identifier: Apache-2.0
"""What a scheduler's view of the hosts is made of, and what brings it up to date.

A change that matters to the view touches ``compute_nodes.updated_at``; reading what was touched since the last look
(with an overlap, as changes become visible out of the order of their times) costs what changed, not what exists. Most
of what changes is booked amounts, which come as rows of seven numbers; the rest raises ``revision`` as well, and only
then the node is read as a whole. Under load a look finds some hundred rows, so their width is what a look costs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from nova_lite.db import grants
from nova_lite.db.clock import Timestamp, now
from nova_lite.db.models import aggregate_hosts, aggregates, compute_nodes, instances, services
from nova_lite.db.models import grants as grants_table
from nova_lite.db.registry import COMPUTE
from nova_lite.objects.ledger import NodeBooks
from nova_lite.objects.resources import Resources


@dataclass(frozen=True, slots=True)
class Host:
    """One compute node, with its service and the sum of its live grants (pending), as of when it was read."""

    revision: int
    books: NodeBooks
    pending: Resources
    total: Resources
    service_id: int
    host: str
    node: str
    server: str
    disabled: bool
    forced_down: bool
    instances: int
    building: int
    failed_builds: int
    hypervisor_type: str
    hypervisor_version: int
    architectures: frozenset[str]
    vm_modes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """metadata values may be several, separated by commas, as operators write them."""

    id: int
    metadata: dict[str, str]
    hosts: frozenset[str]


class Booked(NamedTuple):
    """What of a node changes all the time: vcpus, memory_mb and disk_gb of its allocations and live grants."""

    node_id: int
    revision: int
    vcpus: int
    memory_mb: int
    disk_gb: int
    building: int
    failed_builds: int


@dataclass(frozen=True, slots=True)
class Moment:
    """The database's time, and a value that differs when any aggregate has changed."""

    at: datetime
    aggregates: tuple[Any, ...]


_HOSTS = sa.select(
    *grants.NODE_BOOKS_COLUMNS,
    compute_nodes.c.revision,
    compute_nodes.c.host,
    compute_nodes.c.node,
    compute_nodes.c.instances,
    compute_nodes.c.building,
    compute_nodes.c.failed_builds,
    compute_nodes.c.hypervisor_type,
    compute_nodes.c.hypervisor_version,
    compute_nodes.c.architectures,
    compute_nodes.c.vm_modes,
    services.c.id.label("service_id"),
    services.c.server,
    services.c.disabled,
    services.c.forced_down,
).select_from(compute_nodes.join(services, compute_nodes.c.service_id == services.c.id))

# Sums are decimals to MariaDB, which take long to read.
_BOOKED = (
    sa.select(
        compute_nodes.c.id,
        compute_nodes.c.revision,
        *(
            sa.cast(
                compute_nodes.c[f"used_{part}"] + sa.func.coalesce(sa.func.sum(grants_table.c[part]), 0), sa.BigInteger
            )
            for part in ("vcpus", "memory_mb", "disk_gb")
        ),
        compute_nodes.c.building,
        compute_nodes.c.failed_builds,
    )
    .select_from(compute_nodes.outerjoin(grants_table, grants_table.c.node_id == compute_nodes.c.id))
    .where(compute_nodes.c.updated_at >= sa.bindparam("since", type_=Timestamp))
    .group_by(compute_nodes.c.id)
)

_MOMENT = sa.select(sa.type_coerce(now(), Timestamp), sa.func.count(), sa.func.max(aggregates.c.updated_at))


def moment(conn: sa.Connection) -> Moment:
    """Return the time of a look; to be called first in its transaction, so that it is not later than what is seen."""
    row = conn.execute(_MOMENT).one()
    return Moment(row[0], tuple(row[1:]))


def read(conn: sa.Connection, node_ids: Sequence[int] | None = None) -> list[Host]:
    """Read these nodes, or all, with all that there is to know of them."""
    statement = _HOSTS if node_ids is None else _HOSTS.where(compute_nodes.c.id.in_(node_ids))
    rows = conn.execute(statement).all()
    if not rows:
        return []
    pending = grants.pending_by_node(conn, node_ids)
    return [_host(row, pending.get(row.id, Resources())) for row in rows]


def booked_since(conn: sa.Connection, since: datetime, overlap: float) -> list[Booked]:
    """Return what is booked on the nodes touched since then, or at most so many seconds earlier."""
    rows = conn.execute(_BOOKED, {"since": since - timedelta(seconds=overlap)})
    return [Booked._make(row) for row in rows]


def _host(row: Any, pending: Resources) -> Host:
    return Host(
        revision=row.revision,
        books=grants.node_books(row),
        pending=pending,
        total=Resources(row.total_vcpus, row.total_memory_mb, row.total_disk_gb),
        service_id=row.service_id,
        host=row.host,
        node=row.node,
        server=row.server,
        disabled=row.disabled,
        forced_down=row.forced_down,
        instances=row.instances,
        building=row.building,
        failed_builds=row.failed_builds,
        hypervisor_type=row.hypervisor_type,
        hypervisor_version=row.hypervisor_version,
        architectures=frozenset(json.loads(row.architectures)),
        vm_modes=frozenset(json.loads(row.vm_modes)),
    )


def silent_services(conn: sa.Connection, down_time: float) -> set[int]:
    """Return the ids of the compute services without a heartbeat for so many seconds."""
    silent = sa.and_(services.c.binary == COMPUTE, services.c.last_seen_at <= now(-down_time))
    return set(conn.execute(sa.select(services.c.id).where(silent)).scalars())


def read_aggregates(conn: sa.Connection) -> list[Aggregate]:
    hosts: dict[int, set[str]] = {}
    for aggregate_id, host in conn.execute(sa.select(aggregate_hosts.c.aggregate_id, aggregate_hosts.c.host)):
        hosts.setdefault(aggregate_id, set()).add(host)
    rows = conn.execute(sa.select(aggregates.c.id, aggregates.c.metadata))
    return [Aggregate(row[0], json.loads(row[1]), frozenset(hosts.get(row[0], ()))) for row in rows]


def hosts_of_instances(conn: sa.Connection, uuids: Sequence[str]) -> dict[str, str]:
    """Return instance uuid -> the host that it is on, of those that are on one."""
    statement = sa.select(instances.c.uuid, instances.c.host).where(
        instances.c.uuid.in_(uuids), instances.c.deleted == 0, instances.c.host.is_not(None)
    )
    return {row[0]: row[1] for row in conn.execute(statement)}

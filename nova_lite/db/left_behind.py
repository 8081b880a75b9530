# SPDX-License-Identifier: Apache-2.0
"""What moves have left on hosts, with the proof that it may be removed: nobody cleans up by guessing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from nova_lite.db import instances, operations
from nova_lite.db.models import compute_nodes, migrations, operation_steps
from nova_lite.db.models import instances as instances_table
from nova_lite.db.models import operations as operations_table
from nova_lite.db.moves import COLUMNS, TYPES


@dataclass(frozen=True, slots=True)
class Remains:
    """What a server has left on a host, with proof: the server is elsewhere, and the move is on record.

    migration is set if its half is to be dropped when this is gone.
    """

    uuid: str
    host: str
    shared: bool
    migration: str | None = None
    node: str = ""


def proven(conn: sa.Connection, where: Iterable[tuple[str, str]]) -> list[Remains]:
    """Return what may be removed of what hypervisors show: of the (server, host) pairs, those for which there is proof.

    The server's row names another host, no move that is under way touches this one, and an earlier move does, if only
    as a destination that failed.
    """
    pairs = set(where)
    uuids = sorted({uuid for uuid, _host in pairs})
    if not uuids:
        return []
    homes = dict(
        conn.execute(
            sa.select(instances_table.c.uuid, instances_table.c.host).where(
                instances_table.c.uuid.in_(uuids), instances_table.c.deleted == 0
            )
        ).all()
    )
    rows = conn.execute(
        sa.select(*COLUMNS).where(migrations.c.instance_uuid.in_(uuids)).order_by(migrations.c.id)
    ).all()
    tried = {
        tuple(row)
        for row in conn.execute(
            sa.select(operations_table.c.instance_uuid, operation_steps.c.host)
            .join(operation_steps, operation_steps.c.operation_id == operations_table.c.id)
            .where(operations_table.c.instance_uuid.in_(uuids), operations_table.c.kind.in_(list(TYPES)))
            .distinct()
        )
    }
    found = []
    for uuid, host in sorted(pairs):
        touching = [row for row in rows if row.instance_uuid == uuid and host in (row.source_compute, row.dest_compute)]
        under_way = [row for row in touching if row.open and row.status != "done"]
        on_record = bool(touching) or (uuid, host) in tried
        if not on_record or under_way or homes.get(uuid, host) == host:
            continue
        shared = bool(touching and touching[-1].shared_disks)
        half = next((row.uuid for row in touching if row.open and row.source_compute == host), None)
        found.append(Remains(uuid, host, shared, half))
    return found


def evacuated(conn: sa.Connection, hosts: Sequence[str]) -> list[Remains]:
    """Return the servers that were evacuated from the hosts and whose halves there are still held."""
    there = sa.and_(migrations.c.source_compute.in_(hosts), migrations.c.status == "done", migrations.c.open.is_(True))
    rows = conn.execute(sa.select(*COLUMNS).where(there))
    return [
        Remains(row.instance_uuid, row.source_compute, bool(row.shared_disks), row.uuid, row.source_node)
        for row in rows
    ]


def other_places(conn: sa.Connection, uuids: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (server, host, node) of where servers that are being deleted may have something besides their host."""
    there = sa.and_(migrations.c.instance_uuid.in_(uuids), migrations.c.open.is_(True))
    rows = conn.execute(sa.select(*COLUMNS).where(there)).all()
    if not rows:
        return []
    homes = {row.uuid: row.host for row in instances.get_many(conn, uuids)}
    places = {(row.instance_uuid, row.source_compute, row.source_node) for row in rows}
    places |= {(row.instance_uuid, row.dest_compute, row.dest_node) for row in rows if row.dest_compute}
    return sorted(place for place in places if homes.get(place[0]) != place[1])


def attempted_places(conn: sa.Connection, uuids: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (server, host, node) of where builds and moves of servers have failed.

    A hypervisor that hung in one of them may have made a domain all the same. Hosts that are gone are left out.
    """
    tried = {*_failed_moves(conn, uuids), *_failed_builds(conn, uuids)}
    if not tried:
        return []
    columns = (compute_nodes.c.host, compute_nodes.c.node)
    known = conn.execute(sa.select(*columns).where(compute_nodes.c.host.in_(sorted({host for _uuid, host in tried}))))
    nodes = {row.host: row.node for row in known}
    return sorted((uuid, host, nodes[host]) for uuid, host in tried if host in nodes)


def _failed_moves(conn: sa.Connection, uuids: Sequence[str]) -> list[tuple[str, str]]:
    columns = (migrations.c.instance_uuid, migrations.c.source_compute, migrations.c.dest_compute)
    failed = sa.and_(migrations.c.open.is_(False), migrations.c.status.not_in(("completed", "confirmed", "reverted")))
    rows = conn.execute(sa.select(*columns).where(migrations.c.instance_uuid.in_(uuids), failed))
    return [(row[0], host) for row in rows for host in row[1:] if host]


def _failed_builds(conn: sa.Connection, uuids: Sequence[str]) -> list[tuple[str, str]]:
    failed = sa.and_(
        operations_table.c.instance_uuid.in_(uuids),
        operations_table.c.kind.in_((operations.CREATE, operations.UNSHELVE)),
        operation_steps.c.result == "Error",
        operation_steps.c.host.is_not(None),
    )
    rows = conn.execute(
        sa.select(operations_table.c.instance_uuid, operation_steps.c.host)
        .join(operation_steps, operation_steps.c.operation_id == operations_table.c.id)
        .where(failed)
    )
    return [(row[0], row[1]) for row in rows]


def hosts_with(conn: sa.Connection, uuid: str) -> list[str]:
    """Return the hosts where an evacuation has left something of the server that is not cleaned up yet."""
    there = sa.and_(migrations.c.instance_uuid == uuid, migrations.c.status == "done", migrations.c.open.is_(True))
    return list(conn.execute(sa.select(migrations.c.source_compute).where(there)).scalars())

# SPDX-License-Identifier: Apache-2.0
"""Grants: one function a transaction, or a part of one.

Every function takes the connection of a transaction that its caller began. Locks are taken in one order everywhere:
nodes by id, groups by id, grants, allocations, instances, then the network and its addresses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from nova_lite.db.clock import Timestamp, now
from nova_lite.db.models import allocations, compute_nodes, grants, migrations, server_groups
from nova_lite.objects.group import AFFINITY
from nova_lite.objects.ledger import Grant, GroupBooks, Ledger, Mover, NodeBooks
from nova_lite.objects.resources import Resources


@dataclass(frozen=True, slots=True)
class GrantRequest:
    """One grant to be written: a consumer's wish to be on a node."""

    consumer: str
    migration: str
    node_id: int
    amounts: Resources
    group_id: int | None = None


# Statements are built once, since building one costs more than executing it.
_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
_NODES_LOCKED = (
    sa.select(compute_nodes.c.id, compute_nodes.c.ticket, sa.type_coerce(now(), Timestamp))
    .where(compute_nodes.c.id.in_(_IDS))
    .order_by(compute_nodes.c.id)
    .with_for_update()
)
_GROUPS_LOCKED = (
    sa.select(server_groups.c.id, server_groups.c.ticket)
    .where(server_groups.c.id.in_(_IDS))
    .order_by(server_groups.c.id)
    .with_for_update()
)
_TICKETS_RAISED = {
    table: sa.update(table)
    .where(table.c.id.in_(_IDS))
    .values(ticket=table.c.ticket + sa.bindparam("count"), updated_at=now())
    for table in (compute_nodes, server_groups)
}
_PURPOSES_DELETED = sa.delete(grants).where(
    sa.tuple_(grants.c.consumer, grants.c.migration).in_(sa.bindparam("purposes", expanding=True))
)
_INSERT = sa.insert(grants)


def write(
    conn: sa.Connection, requests: Sequence[GrantRequest], lifetime: float, replacing: bool = True
) -> list[int | None]:
    """Write a grant for each request whose node still exists, each with the next ticket of its node and group.

    Locks the nodes, then the groups, both by ascending id; the tickets are handed out under those locks, so their
    order is the order in which the grants become visible. Older grants of the same consumers for the same purpose
    are deleted: one consumer has at most one live grant per purpose. Three to six statements, whatever the number
    of requests; run again after an unknown outcome it replaces what it wrote.

    :param lifetime: seconds until the grants expire.
    :param replacing: delete what is older; without, the unique key on the purpose tells that there is something.
    :returns: the ticket of each request's grant on its node, None for those whose node is gone.
    :raises DBDuplicateEntry: not replacing, and there is an older grant.
    """
    nodes, at = _lock_nodes(conn, {request.node_id for request in requests})
    groups = _lock_groups(conn, {request.group_id for request in requests if request.group_id is not None})
    if replacing:
        conn.execute(_PURPOSES_DELETED, {"purposes": [(request.consumer, request.migration) for request in requests]})
    rows = [
        {
            "consumer": request.consumer,
            "migration": request.migration,
            "node_id": request.node_id,
            "ticket": nodes[request.node_id] + place,
            "group_id": request.group_id if request.group_id in groups else None,
            "group_ticket": groups[request.group_id] + place if request.group_id in groups else None,
            "vcpus": request.amounts.vcpus,
            "memory_mb": request.amounts.memory_mb,
            "disk_gb": request.amounts.disk_gb,
            "created_at": at,
            "expires_at": at + timedelta(seconds=lifetime),
        }
        for place, request in enumerate(requests, start=1)
        if request.node_id in nodes
    ]
    if not rows:
        return [None for _request in requests]
    # Tickets need not be without gaps: raising all rows by the batch's size takes one statement.
    for table, locked in ((compute_nodes, nodes), (server_groups, groups)):
        if locked:
            conn.execute(_TICKETS_RAISED[table], {"ids": list(locked), "count": len(requests)})
    conn.execute(_INSERT, rows)
    return [
        nodes[request.node_id] + place if request.node_id in nodes else None
        for place, request in enumerate(requests, start=1)
    ]


def _lock_nodes(conn: sa.Connection, ids: Iterable[int]) -> tuple[dict[int, int], datetime]:
    rows = conn.execute(_NODES_LOCKED, {"ids": sorted(ids)}).all()
    return {row[0]: row[1] for row in rows}, rows[-1][2] if rows else datetime.min


def _lock_groups(conn: sa.Connection, ids: Iterable[int | None]) -> dict[int | None, int]:
    wanted = sorted(group_id for group_id in ids if group_id is not None)
    if not wanted:
        return {}
    return {row[0]: row[1] for row in conn.execute(_GROUPS_LOCKED, {"ids": wanted})}


_GRANT_COLUMNS = (
    grants.c.id,
    grants.c.consumer,
    grants.c.migration,
    grants.c.node_id,
    grants.c.ticket,
    grants.c.vcpus,
    grants.c.memory_mb,
    grants.c.disk_gb,
    grants.c.group_id,
    grants.c.group_ticket,
)


def grant_of(row: Any) -> Grant:
    amounts = Resources(row.vcpus, row.memory_mb, row.disk_gb)
    return Grant(row.id, row.consumer, row.migration, row.node_id, row.ticket, amounts, row.group_id, row.group_ticket)


NODE_BOOKS_COLUMNS = (
    compute_nodes.c.id,
    compute_nodes.c.total_vcpus,
    compute_nodes.c.total_memory_mb,
    compute_nodes.c.total_disk_gb,
    compute_nodes.c.cpu_allocation_ratio,
    compute_nodes.c.ram_allocation_ratio,
    compute_nodes.c.disk_allocation_ratio,
    compute_nodes.c.reserved_vcpus,
    compute_nodes.c.reserved_memory_mb,
    compute_nodes.c.reserved_disk_gb,
    compute_nodes.c.used_vcpus,
    compute_nodes.c.used_memory_mb,
    compute_nodes.c.used_disk_gb,
)


def node_books(row: Sequence[float]) -> NodeBooks:
    """Make NodeBooks of a row of NODE_BOOKS_COLUMNS: capacity = total x ratio - reserved, rounded down."""
    capacity = Resources(*(int(row[1 + i] * row[4 + i]) - int(row[7 + i]) for i in range(3)))
    return NodeBooks(int(row[0]), capacity, Resources(int(row[10]), int(row[11]), int(row[12])))


_NODES_READ = sa.select(*NODE_BOOKS_COLUMNS).where(compute_nodes.c.id.in_(_IDS))
_GRANTS_OF_NODES = sa.select(*_GRANT_COLUMNS).where(grants.c.node_id.in_(_IDS))
_GRANTS_OF_GROUPS = sa.select(*_GRANT_COLUMNS).where(grants.c.group_id.in_(_IDS))
_GROUPS_READ = sa.select(server_groups.c.id, server_groups.c.policy, server_groups.c.max_server_per_host).where(
    server_groups.c.id.in_(_IDS)
)
_MEMBERS = (
    sa.select(allocations.c.group_id, allocations.c.node_id, sa.func.count(sa.distinct(allocations.c.consumer)))
    .where(allocations.c.group_id.in_(_IDS))
    .group_by(allocations.c.group_id, allocations.c.node_id)
)


def read_ledger(conn: sa.Connection, node_ids: Iterable[int], group_ids: Iterable[int] = ()) -> Ledger:
    """Read what is needed to judge every grant on the nodes and in the groups; to be called in a ``Database.read``.

    Follows grants of affinity groups to the group's other grants and their nodes, until nothing new turns up; that is
    at most a step or two, since few first members of affinity groups are in flight at once. Other rules are a matter
    of single nodes, and their groups' grants elsewhere are left out. Grants past their expiry still count: only their
    deletion ends them, so that all who replay agree.
    """
    nodes: dict[int, NodeBooks] = {}
    groups: dict[int, GroupBooks] = {}
    found: dict[int, Grant] = {}
    new_nodes, new_groups = set(node_ids), set(group_ids)
    asked_nodes, asked_groups = set(new_nodes), set(new_groups)
    while new_nodes or new_groups:
        rows: list[sa.Row[Any]] = []
        if new_nodes:
            ids = {"ids": sorted(new_nodes)}
            nodes.update((row[0], node_books(row)) for row in conn.execute(_NODES_READ, ids))
            rows += conn.execute(_GRANTS_OF_NODES, ids)
        if new_groups:
            read = read_groups(conn, sorted(new_groups))
            groups.update(read)
            homes = [group.id for group in read.values() if group.policy == AFFINITY]
            if homes:
                rows += conn.execute(_GRANTS_OF_GROUPS, {"ids": homes})
        found.update((row[0], grant_of(row)) for row in rows)
        new_groups = {row.group_id for row in rows if row.group_id is not None} - asked_groups
        new_nodes = {row.node_id for row in rows} - asked_nodes
        asked_groups |= new_groups
        asked_nodes |= new_nodes
    return Ledger(nodes, _with_movers(conn, groups, found.values()), tuple(found.values()))


_NODES_AND_GRANTS = (
    sa.select(*NODE_BOOKS_COLUMNS, *(column.label(f"grant_{column.name}") for column in _GRANT_COLUMNS))
    .select_from(compute_nodes.outerjoin(grants, grants.c.node_id == compute_nodes.c.id))
    .where(compute_nodes.c.id.in_(_IDS))
)


def read_few(conn: sa.Connection, node_ids: Iterable[int]) -> Ledger | None:
    """Read the nodes and the grants on them in one statement, which is a snapshot of its own.

    Each grant's row repeats its node, so this is for few nodes.

    :returns: None if any of the grants is of a group: to judge those takes more.
    """
    rows = conn.execute(_NODES_AND_GRANTS, {"ids": sorted(node_ids)}).all()
    if any(row.grant_group_id is not None for row in rows):
        return None
    found = (row[len(NODE_BOOKS_COLUMNS) :] for row in rows if row.grant_id is not None)
    held = tuple(Grant(g[0], g[1], g[2], g[3], g[4], Resources(g[5], g[6], g[7]), g[8], g[9]) for g in found)
    return Ledger({row[0]: node_books(row) for row in rows}, {}, held)


def read_groups(conn: sa.Connection, ids: Sequence[int]) -> dict[int, GroupBooks]:
    """Read the groups with their allocated members by node."""
    members: dict[int, dict[int, int]] = {group_id: {} for group_id in ids}
    for group_id, node_id, count in conn.execute(_MEMBERS, {"ids": ids}):
        members[group_id or 0][node_id] = count
    rows = conn.execute(_GROUPS_READ, {"ids": ids})
    return {row[0]: GroupBooks(row[0], row[1], row[2], members[row[0]]) for row in rows}


def read_groups_of(conn: sa.Connection, ids: Sequence[int], found: Iterable[Grant]) -> dict[int, GroupBooks]:
    """Read the groups with their allocated members, and those of them that these grants move."""
    return _with_movers(conn, read_groups(conn, ids), found)


def read_whole_ledger(conn: sa.Connection, group_ids: Iterable[int] = ()) -> Ledger:
    """Read all nodes and all live grants from one snapshot: what a "no valid host" must be founded on."""
    nodes = {row[0]: node_books(row) for row in conn.execute(sa.select(*NODE_BOOKS_COLUMNS))}
    found = tuple(grant_of(row) for row in conn.execute(sa.select(*_GRANT_COLUMNS)))
    ids = {grant.group_id for grant in found if grant.group_id is not None} | set(group_ids)
    groups = read_groups(conn, sorted(ids)) if ids else {}
    return Ledger(nodes, _with_movers(conn, groups, found), found)


def _with_movers(conn: sa.Connection, groups: dict[int, GroupBooks], found: Iterable[Grant]) -> dict[int, GroupBooks]:
    moving = {grant.consumer: grant.migration for grant in found if grant.migration and grant.group_id in groups}
    if not moving:
        return groups
    movers = read_movers(conn, moving)
    return {group_id: replace(group, movers=movers) for group_id, group in groups.items()}


def read_movers(conn: sa.Connection, moving: Mapping[str, str]) -> dict[str, Mover]:
    """Read where members that move are allocated, and what they are evacuated from.

    :param moving: consumer -> migration.
    """
    nodes: dict[str, set[int]] = {consumer: set() for consumer in moving}
    held = sa.select(allocations.c.consumer, allocations.c.node_id).where(allocations.c.consumer.in_(sorted(moving)))
    for consumer, node_id in conn.execute(held):
        nodes[consumer].add(node_id)
    evacuations = sa.and_(migrations.c.uuid.in_(sorted(moving.values())), migrations.c.type == "evacuation")
    sources = sa.select(migrations.c.uuid, migrations.c.source_node_id).where(evacuations)
    abandoned = dict(conn.execute(sources).all())
    return {
        consumer: Mover(frozenset(nodes[consumer]), abandoned.get(migration)) for consumer, migration in moving.items()
    }


_LOST_DELETED = sa.delete(grants).where(grants.c.id.in_(_IDS))
_TOUCHED = sa.update(compute_nodes).where(compute_nodes.c.id.in_(_IDS)).values(updated_at=now())


def remove(conn: sa.Connection, lost: Sequence[Grant]) -> None:
    """Delete grants that their owner gives up, and touch their nodes so that every view looks again."""
    _touch(conn, {grant.node_id for grant in lost})
    conn.execute(_LOST_DELETED, {"ids": [grant.id for grant in lost]})


def remove_of_consumers(conn: sa.Connection, consumers: Sequence[str]) -> int:
    """Delete whatever grants the consumers have, for any purpose; return how many there were."""
    statement = sa.select(grants.c.node_id).where(grants.c.consumer.in_(consumers))
    nodes = {row[0] for row in conn.execute(statement)}
    if not nodes:
        return 0
    _touch(conn, nodes)
    return conn.execute(sa.delete(grants).where(grants.c.consumer.in_(consumers))).rowcount


def expire(conn: sa.Connection) -> Counter[int]:
    """Delete the grants past their time, and those whose node is gone; return how many by node id."""
    known = sa.select(compute_nodes.c.id)
    ended = sa.or_(grants.c.expires_at < now(), grants.c.node_id.not_in(known))
    rows = conn.execute(sa.select(grants.c.id, grants.c.node_id).where(ended)).all()
    if not rows:
        return Counter()
    _touch(conn, {row[1] for row in rows})
    # The condition is repeated, since the rows were read before their nodes were locked.
    conn.execute(sa.delete(grants).where(grants.c.id.in_([row[0] for row in rows]), ended))
    return Counter(row[1] for row in rows)


def _touch(conn: sa.Connection, node_ids: Iterable[int]) -> None:
    conn.execute(_TOUCHED, {"ids": sorted(node_ids)})


def occupancy(conn: sa.Connection, group_ids: Sequence[int]) -> dict[int, Counter[int]]:
    """Count the groups' members by node, allocated and granted alike: group id -> node id -> members.

    For choosing only: it counts grants that are about to be lost.
    """
    found: dict[int, Counter[int]] = {group_id: Counter() for group_id in group_ids}
    for table in (allocations, grants):
        statement = (
            sa.select(table.c.group_id, table.c.node_id, sa.func.count())
            .where(table.c.group_id.in_(group_ids))
            .group_by(table.c.group_id, table.c.node_id)
        )
        for group_id, node_id, count in conn.execute(statement):
            found[group_id][node_id] += count
    return found


def pending_by_node(conn: sa.Connection, node_ids: Sequence[int] | None = None) -> dict[int, Resources]:
    """Sum the live grants of the nodes (of all for None); for choosing only, as losers are counted too."""
    statement = sa.select(
        grants.c.node_id,
        sa.func.sum(grants.c.vcpus),
        sa.func.sum(grants.c.memory_mb),
        sa.func.sum(grants.c.disk_gb),
    ).group_by(grants.c.node_id)
    if node_ids is not None:
        statement = statement.where(grants.c.node_id.in_(node_ids))
    return {row[0]: Resources(int(row[1]), int(row[2]), int(row[3])) for row in conn.execute(statement)}

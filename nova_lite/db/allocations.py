# SPDX-License-Identifier: Apache-2.0
"""Allocations: grants consumed under the node's lock, and what is given back together with its reason.

``compute_nodes.used_*`` is the sum of a node's allocations and changes in the transaction that changes them. Locks
are taken in the order that db/grants.py states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from nova_lite.db import grants as grants_db
from nova_lite.db import operations
from nova_lite.db.clock import Timestamp, now
from nova_lite.db.models import allocations, compute_nodes, grants, instances, server_groups
from nova_lite.db.models import operations as operations_table
from nova_lite.objects import instance as states
from nova_lite.objects.build import Claim, ClaimOutcome
from nova_lite.objects.group import AFFINITY, ANTI_AFFINITY
from nova_lite.objects.ledger import GroupBooks, NodeBooks
from nova_lite.objects.resources import Resources

# Statements are built once, since building one costs more than executing it.
_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_NODES_LOCKED = (
    sa.select(
        *grants_db.NODE_BOOKS_COLUMNS,
        compute_nodes.c.host,
        compute_nodes.c.node,
        sa.type_coerce(now(), Timestamp).label("at"),
    )
    .where(compute_nodes.c.id.in_(_IDS))
    .order_by(compute_nodes.c.id)
    .with_for_update()
)
_NODE_IDS_LOCKED = (
    sa.select(compute_nodes.c.id).where(compute_nodes.c.id.in_(_IDS)).order_by(compute_nodes.c.id).with_for_update()
)
_GRANTS_LOCKED = (
    sa.select(grants, (grants.c.expires_at > now()).label("live")).where(grants.c.id.in_(_IDS)).with_for_update()
)
_GRANTS_DELETED = sa.delete(grants).where(grants.c.id.in_(_IDS))
_OF_CONSUMERS = sa.select(allocations.c.consumer, allocations.c.migration, allocations.c.node_id).where(
    allocations.c.consumer.in_(_UUIDS)
)
_GROUPS_LOCKED = (
    sa.select(server_groups.c.id).where(server_groups.c.id.in_(_IDS)).order_by(server_groups.c.id).with_for_update()
)
_INSTANCES_LOCKED = (
    sa.select(instances.c.uuid, instances.c.task_state, instances.c.deleted)
    .where(instances.c.uuid.in_(_UUIDS))
    .order_by(instances.c.id)
    .with_for_update()
)
_ACTIVE_LOCKED = (
    sa.select(operations_table.c.uuid, operations_table.c.step)
    .where(operations_table.c.uuid.in_(_UUIDS), operations_table.c.status == operations.ACTIVE)
    .with_for_update()
)
_INSERT = sa.insert(allocations)
_NODE_BOOKED = (
    sa.update(compute_nodes)
    .where(compute_nodes.c.id == sa.bindparam("node_id"))
    .values(
        used_vcpus=sa.bindparam("vcpus"),
        used_memory_mb=sa.bindparam("memory_mb"),
        used_disk_gb=sa.bindparam("disk_gb"),
        instances=compute_nodes.c.instances + sa.bindparam("count"),
        building=compute_nodes.c.building + sa.bindparam("builds"),
        last_grant_ticket=sa.bindparam("grant_ticket"),
        last_grant_at=sa.bindparam("at"),
    )
)
_OWNERS_PLACED = (
    sa.update(instances)
    .where(instances.c.uuid.in_(_UUIDS))
    .values(
        host=sa.bindparam("new_host"),
        node=sa.bindparam("new_node"),
        node_id=sa.bindparam("new_node_id"),
        task_state=states.SPAWNING,
    )
)


def consume(conn: sa.Connection, claims: Sequence[Claim], lease: float) -> list[ClaimOutcome]:
    """Turn grants into allocations: the last gate, for a batch of builds.

    Locks the nodes, then the groups of the grants, then deletes the grants. A claim is refused if its grant is gone
    or expired, if the server is being deleted, if its operation has ended, or is a move that has gone on, if the
    amounts no longer fit (capacity changed, or an earlier grant disappeared under a verdict) or if the group's rule
    would break. A message delivered twice finds its allocation there and is granted again. The instance's host and the
    operation's new owner are written here too: from now on the books, the row and the lease tell the same story.

    :param lease: seconds for which the claim's server holds the operation.
    """
    return _Consume(conn, claims, lease).run()


class _Consume:
    """One consume transaction; the methods follow each other in the order of ``run``."""

    def __init__(self, conn: sa.Connection, claims: Sequence[Claim], lease: float) -> None:
        self._conn = conn
        self._claims = sorted(claims, key=lambda claim: (claim.node_id, claim.grant_id))
        self._lease = lease
        self._refused: dict[str, str] = {}
        self._granted: list[tuple[Claim, sa.Row[Any]]] = []
        self._repeated: list[Claim] = []

    def run(self) -> list[ClaimOutcome]:
        self._lock_nodes()
        self._read_grants()
        self._lock_groups()
        self._read_instances()
        for claim in self._claims:
            reason = self._judge(claim)
            if reason:
                self._refused[claim.operation] = reason
        self._write()
        return [
            ClaimOutcome(c.operation, c.consumer, c.operation not in self._refused, self._refused.get(c.operation, ""))
            for c in self._claims
        ]

    def _lock_nodes(self) -> None:
        rows = self._conn.execute(_NODES_LOCKED, {"ids": sorted({claim.node_id for claim in self._claims})}).all()
        self._rows = {row[0]: row for row in rows}
        self._books: dict[int, NodeBooks] = {row[0]: grants_db.node_books(row) for row in rows}
        self._booked = {node_id: books.used for node_id, books in self._books.items()}

    def _read_grants(self) -> None:
        found = self._conn.execute(_GRANTS_LOCKED, {"ids": [claim.grant_id for claim in self._claims]})
        self._grants = {row.id: row for row in found}
        existing = self._conn.execute(_OF_CONSUMERS, {"uuids": [claim.consumer for claim in self._claims]})
        self._existing = {(row[0], row[1]): row[2] for row in existing}

    def _lock_groups(self) -> None:
        ids = sorted({row.group_id for row in self._grants.values() if row.group_id is not None})
        self._groups: dict[int, GroupBooks] = {}
        if ids:
            self._conn.execute(_GROUPS_LOCKED, {"ids": ids}).all()
            found = [row for row in self._grants.values() if row.group_id is not None]
            self._groups = grants_db.read_groups_of(self._conn, ids, [grants_db.grant_of(row) for row in found])

    def _read_instances(self) -> None:
        found = self._conn.execute(_INSTANCES_LOCKED, {"uuids": [claim.consumer for claim in self._claims]})
        self._instances = {row.uuid: row for row in found}
        active = self._conn.execute(_ACTIVE_LOCKED, {"uuids": [claim.operation for claim in self._claims]})
        self._active = {row.uuid: row.step for row in active}

    def _judge(self, claim: Claim) -> str | None:
        """Return why the claim is refused, or None; a granted one is booked for the claims after it."""
        instance = self._instances.get(claim.consumer)
        if instance is None or instance.deleted or instance.task_state == states.DELETING:
            return "the server is deleted"
        if claim.operation not in self._active:
            return "the operation has ended"
        if claim.migration and self._active[claim.operation] != claim.step:
            return "the move is at another step"
        if (claim.consumer, claim.migration) in self._existing:
            if self._existing[claim.consumer, claim.migration] != claim.node_id:
                return "the server was placed on another node"
            self._repeated.append(claim)
            return None
        grant = self._grant_of(claim)
        if grant is None:
            return "the grant is gone"
        if not grant.live:
            return "the grant has expired"
        amounts = Resources(grant.vcpus, grant.memory_mb, grant.disk_gb)
        node = self._books.get(grant.node_id)
        if node is None:
            return "the node is gone"
        if not (self._booked[node.id] + amounts).fits(node.capacity):
            return "the host no longer has room"
        reason = self._leftover_refuses(claim) or self._group_refuses(grant)
        if reason is None:
            self._booked[node.id] += amounts
            self._granted.append((claim, grant))
        return reason

    def _leftover_refuses(self, claim: Claim) -> str | None:
        """A server does not come back to a host where an earlier move's half of it still stands."""
        for (consumer, migration), node_id in self._existing.items():
            if consumer == claim.consumer and node_id == claim.node_id and migration not in ("", claim.migration):
                return "what the server left on the host is not cleaned up yet"
        return None

    def _group_refuses(self, grant: sa.Row[Any]) -> str | None:
        group = self._groups.get(grant.group_id) if grant.group_id is not None else None
        if group is None:
            return None
        here = group.members.get(grant.node_id, 0) - group.set_aside(grant.consumer, grant.node_id)
        if group.policy == ANTI_AFFINITY and here >= group.max_server_per_host:
            return "another member of the anti-affinity group took the host"
        if group.policy == AFFINITY and group.nodes_of_others(grant.consumer) - {grant.node_id}:
            return "the affinity group is at home on another host"
        group.members[grant.node_id] = group.members.get(grant.node_id, 0) + 1
        return None

    def _write(self) -> None:
        refused = [claim for claim in self._claims if claim.operation in self._refused]
        if refused or self._repeated:
            self._remove_unused([*refused, *self._repeated])
        if self._granted:
            self._write_allocations()
            self._write_nodes()
        taken = self._granted_claims() + self._repeated
        if taken:
            self._write_owners(taken)

    def _remove_unused(self, claims: Sequence[Claim]) -> None:
        """Delete the grants that were refused or not needed, so that what stands afterwards is a newer grant or none.

        A message may be so old that its grant's id is somebody else's by now: SQLite gives free ids again.
        """
        mine = [found for claim in claims if (found := self._grant_of(claim)) is not None]
        if mine:
            self._conn.execute(_GRANTS_DELETED, {"ids": [grant.id for grant in mine]})
            # Every view looks again.
            touched = compute_nodes.c.id.in_(sorted({grant.node_id for grant in mine}))
            self._conn.execute(sa.update(compute_nodes).where(touched).values(updated_at=now()))

    def _grant_of(self, claim: Claim) -> sa.Row[Any] | None:
        """Return the grant that the claim was made for, None if it is gone."""
        grant = self._grants.get(claim.grant_id)
        if grant is None or (grant.consumer, grant.migration) != (claim.consumer, claim.migration):
            return None
        return grant if grant.node_id == claim.node_id else None

    def _granted_claims(self) -> list[Claim]:
        return [claim for claim, _grant in self._granted]

    def _write_allocations(self) -> None:
        rows = [
            {
                "consumer": grant.consumer,
                "migration": grant.migration,
                "node_id": grant.node_id,
                "group_id": grant.group_id,
                "vcpus": grant.vcpus,
                "memory_mb": grant.memory_mb,
                "disk_gb": grant.disk_gb,
                "created_at": self._rows[grant.node_id].at,
            }
            for _claim, grant in self._granted
        ]
        self._conn.execute(_INSERT, rows)
        self._conn.execute(_GRANTS_DELETED, {"ids": [grant.id for _claim, grant in self._granted]})

    def _write_nodes(self) -> None:
        by_node: dict[int, list[sa.Row[Any]]] = defaultdict(list)
        for _claim, grant in self._granted:
            by_node[grant.node_id].append(grant)
        rows = [
            {
                "node_id": node_id,
                "vcpus": self._booked[node_id].vcpus,
                "memory_mb": self._booked[node_id].memory_mb,
                "disk_gb": self._booked[node_id].disk_gb,
                "count": len(mine),
                "builds": sum(grant.migration == "" for grant in mine),
                "grant_ticket": max(grant.ticket for grant in mine),
                "at": self._rows[node_id].at,
            }
            for node_id, mine in sorted(by_node.items())
        ]
        self._conn.execute(_NODE_BOOKED, rows)

    def _write_owners(self, taken: Sequence[Claim]) -> None:
        by_node: dict[int, list[str]] = defaultdict(list)
        for claim in taken:
            if claim.migration == "":
                by_node[claim.node_id].append(claim.consumer)
        for node_id, consumers in sorted(by_node.items()):
            row = self._rows[node_id]
            place = {"new_host": row.host, "new_node": row.node, "new_node_id": node_id}
            self._conn.execute(_OWNERS_PLACED, {"uuids": consumers, **place})
        by_server: dict[tuple[str, str], list[str]] = defaultdict(list)
        for claim in taken:
            by_server[claim.server, claim.step].append(claim.operation)
        for (server, step), mine in by_server.items():
            operations.hand_over(self._conn, mine, server, step, self._lease)


_NODES_OF_CONSUMERS = sa.select(allocations.c.node_id).where(allocations.c.consumer.in_(_UUIDS))
_HELD_LOCKED = (
    sa.select(allocations).where(allocations.c.consumer.in_(_UUIDS), allocations.c.node_id.in_(_IDS)).with_for_update()
)
_DELETED = sa.delete(allocations).where(allocations.c.id.in_(_IDS))
_NODE_FREED = (
    sa.update(compute_nodes)
    .where(compute_nodes.c.id == sa.bindparam("node_id"))
    .values(
        used_vcpus=compute_nodes.c.used_vcpus - sa.bindparam("vcpus"),
        used_memory_mb=compute_nodes.c.used_memory_mb - sa.bindparam("memory_mb"),
        used_disk_gb=compute_nodes.c.used_disk_gb - sa.bindparam("disk_gb"),
        instances=compute_nodes.c.instances - sa.bindparam("count"),
        building=compute_nodes.c.building - sa.bindparam("builds"),
    )
)


def release(conn: sa.Connection, consumers: Iterable[str], *, were_building: bool = False) -> dict[str, int]:
    """Give back all that the consumers hold, and their grants; return consumer -> node id of what was given back.

    The caller writes in the same transaction the state change that justifies it. Locks the nodes by id first, reads
    the allocations again under those locks, and only then deletes.

    :param were_building: whether the servers still counted as builds in progress on their nodes.
    """
    wanted = sorted(set(consumers))
    grants_db.remove_of_consumers(conn, wanted)
    node_ids = sorted({row[0] for row in conn.execute(_NODES_OF_CONSUMERS, {"uuids": wanted})})
    if not node_ids:
        return {}
    lock_nodes(conn, node_ids)
    held = conn.execute(_HELD_LOCKED, {"uuids": wanted, "ids": node_ids}).all()
    _free(conn, held, were_building)
    return {row.consumer: row.node_id for row in held}


def release_half(conn: sa.Connection, consumer: str, migration: str) -> bool:
    """Give back what a move holds, and its grant; tells whether it held anything.

    To be called as ``release`` is, by whoever ends the move.
    """
    purpose = sa.and_(grants.c.consumer == consumer, grants.c.migration == migration)
    half = sa.and_(allocations.c.consumer == consumer, allocations.c.migration == migration)
    granted = set(conn.execute(sa.select(grants.c.node_id).where(purpose)).scalars())
    booked = set(conn.execute(sa.select(allocations.c.node_id).where(half)).scalars())
    if not granted | booked:
        return False
    lock_nodes(conn, granted | booked)
    if granted:
        conn.execute(sa.delete(grants).where(purpose))
        # Every view looks again.
        conn.execute(sa.update(compute_nodes).where(compute_nodes.c.id.in_(granted)).values(updated_at=now()))
    held = conn.execute(sa.select(allocations).where(half).with_for_update()).all()
    if {row.node_id for row in held} - booked:
        raise operations.Moved("the half was switched over meanwhile")
    _free(conn, held)
    return bool(held)


def lock_nodes(conn: sa.Connection, node_ids: Iterable[int | None]) -> None:
    """Lock the rows of nodes, by ascending id."""
    conn.execute(_NODE_IDS_LOCKED, {"ids": sorted({each for each in node_ids if each is not None})}).all()


def _free(conn: sa.Connection, held: Sequence[sa.Row[Any]], were_building: bool = False) -> None:
    """Delete allocations and subtract them from their nodes, which are locked."""
    conn.execute(_DELETED, {"ids": [row.id for row in held]})
    by_node: dict[int, list[sa.Row[Any]]] = defaultdict(list)
    for row in held:
        by_node[row.node_id].append(row)
    freed = [
        {
            "node_id": node_id,
            "vcpus": sum(row.vcpus for row in rows),
            "memory_mb": sum(row.memory_mb for row in rows),
            "disk_gb": sum(row.disk_gb for row in rows),
            "count": len(rows),
            "builds": len(rows) if were_building else 0,
        }
        for node_id, rows in sorted(by_node.items())
    ]
    if freed:
        conn.execute(_NODE_FREED, freed)

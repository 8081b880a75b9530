# SPDX-License-Identifier: Apache-2.0
"""Builds as the conductor writes them: from an operation that waits to a server that is ACTIVE, or explained.

Each function is one turn of the story in its caller's transaction, state that users see last. What has changed in the
meantime (the server is being deleted, the operation was taken over and ended) makes it do nothing. Locks are taken in
the order that db/grants.py states.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from nova_lite.db import allocations, instances, operations, registry
from nova_lite.db.clock import now
from nova_lite.db.models import allocations as allocations_table
from nova_lite.db.models import compute_nodes
from nova_lite.db.models import grants as grants_table
from nova_lite.db.models import instances as instances_table
from nova_lite.db.models import operations as operations_table
from nova_lite.db.operations import Operation
from nova_lite.objects import instance as states
from nova_lite.objects.build import BuildOutcome
from nova_lite.objects.group import Group

SCHEDULE_EVENT = "conductor_select_destinations"
BUILD_EVENT = "compute__do_build_and_run_instance"
UNSHELVE_EVENT = "compute_unshelve_instance"


@dataclass(frozen=True, slots=True)
class Build:
    """A create operation, or an unshelve of a server without a place; its instance, and the instance's group.

    allocated_node is set if a claim was made.
    """

    operation: Operation
    instance: instances.Instance
    group: Group | None = None
    allocated_node: int | None = None

    @property
    def attempts(self) -> list[dict[str, str]]:
        """The attempts that failed so far: host and reason."""
        return list(self.operation.arguments.get("attempts", []))

    @property
    def is_unshelve(self) -> bool:
        return self.operation.kind == operations.UNSHELVE

    @property
    def event(self) -> str:
        """What the API calls the compute's part of it."""
        return UNSHELVE_EVENT if self.is_unshelve else BUILD_EVENT

    @property
    def excluded_hosts(self) -> tuple[str, ...]:
        return tuple(attempt["host"] for attempt in self.attempts)


# Statements are built once, since building one costs more than executing it.
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_HELD = sa.select(allocations_table.c.consumer, allocations_table.c.node_id).where(
    allocations_table.c.consumer.in_(_UUIDS), allocations_table.c.migration == ""
)
_ACTIVE = sa.select(operations_table.c.uuid, operations_table.c.id).where(
    operations_table.c.uuid.in_(_UUIDS), operations_table.c.status == operations.ACTIVE
)
_NODES_LOCKED = (
    sa.select(compute_nodes.c.id)
    .where(compute_nodes.c.id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(compute_nodes.c.id)
    .with_for_update()
)
_INSTANCES_LOCKED = (
    sa.select(instances_table.c.uuid, instances_table.c.task_state, instances_table.c.deleted)
    .where(instances_table.c.uuid.in_(_UUIDS))
    .order_by(instances_table.c.id)
    .with_for_update()
)

_LESS_BUILDING = (
    sa.update(compute_nodes)
    .where(compute_nodes.c.id == sa.bindparam("node_id"))
    .values(building=compute_nodes.c.building - sa.bindparam("count"))
)


def gather(conn: sa.Connection, claimed: Sequence[Operation]) -> list[Build]:
    """Read the instances, groups and allocations of claimed create operations; deleted instances are left out."""
    rows = {row.uuid: row for row in instances.get_many(conn, [operation.instance_uuid for operation in claimed])}
    groups = instances.groups_of(conn, rows.values())
    nodes = {row[0]: row[1] for row in conn.execute(_HELD, {"uuids": list(rows)})}
    return [
        Build(operation, row, groups.get(row.group_id or 0), nodes.get(row.uuid))
        for operation in claimed
        if (row := rows.get(operation.instance_uuid)) is not None
    ]


def schedule_again(conn: sa.Connection, operation_uuids: Sequence[str]) -> None:
    """Put builds back to where they wait for a scheduler, free for whoever claims them; nobody's failure.

    A build that has a grant or an allocation is under way, and stays: what was refused was an old message.
    """
    under_way = [
        sa.exists().where(table.c.consumer == operations_table.c.instance_uuid, table.c.migration == "")
        for table in (grants_table, allocations_table)
    ]
    conn.execute(
        sa.update(operations_table)
        .where(
            operations_table.c.uuid.in_(operation_uuids),
            operations_table.c.status == operations.ACTIVE,
            *(~each for each in under_way),
        )
        .values(step="accepted", owner=None, lease_expires_at=now(), updated_at=now())
    )


def note_placed(conn: sa.Connection, placed: Sequence[tuple[Build, str | None]], owner: str, lease: float) -> None:
    """Note that the builds have their grants and are handed to their computes.

    A step that is still open is of a grant that was refused, or lost on the way: nothing was built with it.

    :param placed: each build with the host that it goes to.
    :param lease: seconds for the compute to take over; then the build counts as lost on the way.
    """
    at = operations.database_time(conn)
    operations.hand_over(conn, [build.operation.uuid for build, _host in placed], owner, "placed", lease)
    ids = [build.operation.id for build, _host in placed]
    operations.drop_open_steps(conn, ids)
    operations.add_steps(conn, ids, SCHEDULE_EVENT, at, finished=True)
    for event in (BUILD_EVENT, UNSHELVE_EVENT):
        mine = [(build.operation.id, host) for build, host in placed if build.event == event]
        if mine:
            operations.add_steps(conn, [each[0] for each in mine], event, at, [each[1] for each in mine])


def fail(conn: sa.Connection, build: Build, message: str, *, owner: str | None = None, keep_host: bool = False) -> bool:
    """End a build in ERROR with its reason, and give back what it held; returns whether this was still to be done.

    The fault is written with the state, so whoever sees ERROR sees why. A server that was to be unshelved is what it
    was: SHELVED_OFFLOADED.

    :param owner: who must still hold the operation: an answer that comes after its lease was lost decides nothing.
    :param keep_host: leave the server and its allocation on its host, where a domain may exist.
    """
    if owner is not None and not operations.is_held(conn, build.operation.uuid, owner):
        return False
    if not _active(conn, [build.operation.uuid]):
        return False
    if not keep_host:
        allocations.release(conn, [build.instance.uuid], were_building=True)
    elif build.allocated_node is not None:
        _lock_nodes(conn, [build.allocated_node])
    if not _lock_undeleted(conn, [build.instance.uuid]):
        return False
    if owner is not None and not operations.is_held(conn, build.operation.uuid, owner):
        # Whoever took it over while this waited for locks may have placed it: what was given back is theirs.
        raise operations.Moved("another conductor took the build over")
    if keep_host and build.allocated_node is not None:
        _less_building(conn, Counter({build.allocated_node: 1}))
    if not operations.finish(conn, [build.operation.uuid], operations.FAILED, message):
        raise operations.Moved("the build ended meanwhile")
    values: dict[str, Any] = {} if keep_host else {"host": None, "node": None, "node_id": None}
    conn.execute(
        sa.update(instances_table)
        .where(instances_table.c.uuid == build.instance.uuid)
        .values(
            vm_state=states.SHELVED_OFFLOADED if build.is_unshelve else states.ERROR,
            task_state=None,
            fault_code=500,
            fault_message=message,
            fault_at=now(),
            updated_at=now(),
            **values,
        )
    )
    operations.finish_steps(conn, [build.operation.id], "Error", message)
    return True


def complete(conn: sa.Connection, outcomes: Sequence[BuildOutcome]) -> list[str]:
    """Publish builds that succeeded as ACTIVE and end their operations; return the uuids of those servers.

    One statement per kind of row and power state, whatever the number of builds.
    """
    consumers = [outcome.consumer for outcome in outcomes]
    nodes = {row[0]: row[1] for row in conn.execute(_HELD, {"uuids": consumers})}
    active = _active(conn, [outcome.operation for outcome in outcomes])
    mine = [outcome for outcome in outcomes if outcome.operation in active and outcome.consumer in nodes]
    if not mine:
        return []
    _lock_nodes(conn, nodes.values())
    living = _lock_undeleted(conn, [outcome.consumer for outcome in mine])
    ended = set(operations.finish(conn, [o.operation for o in mine if o.consumer in living], operations.SUCCEEDED))
    done = [outcome for outcome in mine if outcome.operation in ended]
    # A server that is being deleted stops counting as a build when its allocation is released.
    _less_building(conn, Counter(nodes[outcome.consumer] for outcome in done), succeeded=True)
    for power_state in sorted({o.power_state for o in done}):
        addresses = {o.consumer: json.dumps(o.addresses or {}) for o in done if o.power_state == power_state}
        conn.execute(
            sa.update(instances_table)
            .where(instances_table.c.uuid.in_(list(addresses)))
            .values(
                vm_state=states.ACTIVE,
                task_state=None,
                power_state=power_state,
                addresses=_each_its_own(addresses),
                launched_at=now(),
                updated_at=now(),
                shelved_image=None,
                shelved_at=None,
            )
        )
    operations.finish_steps(conn, [active[outcome.operation] for outcome in done])
    return [outcome.consumer for outcome in done]


def _each_its_own(texts: dict[str, str]) -> Any:
    """Return what sets a column of each instance to its text, or to the one that all have."""
    common = set(texts.values())
    return common.pop() if len(common) == 1 else sa.case(texts, value=instances_table.c.uuid)


def retry_elsewhere(conn: sa.Connection, build: Build, outcome: BuildOutcome) -> bool:
    """Give back what a failed attempt held and let the build be scheduled again; returns whether it still lives.

    Only if the attempt is still the last one: run again after a commit whose outcome is unknown, it must not touch what
    has become of the build since.
    """
    mine = sa.and_(
        operations_table.c.uuid == outcome.operation,
        operations_table.c.status == operations.ACTIVE,
        operations_table.c.attempt == build.operation.attempt,
    )
    if conn.execute(sa.select(operations_table.c.id).where(mine)).first() is None:
        return False
    allocations.release(conn, [outcome.consumer], were_building=True)
    if outcome.consumer not in _lock_undeleted(conn, [outcome.consumer]):
        return False
    arguments = dict(build.operation.arguments)
    arguments["attempts"] = [*build.attempts, {"host": outcome.host, "reason": outcome.reason}]
    moved_on = conn.execute(
        sa.update(operations_table)
        .where(mine)
        .values(
            step="accepted",
            owner=None,
            lease_expires_at=now(),
            attempt=operations_table.c.attempt + 1,
            arguments=json.dumps(arguments),
            updated_at=now(),
        )
    )
    if not moved_on.rowcount:
        raise operations.Moved("the build ended meanwhile")
    conn.execute(
        sa.update(instances_table)
        .where(instances_table.c.uuid == outcome.consumer)
        .values(host=None, node=None, node_id=None, task_state=_waiting(build), updated_at=now())
    )
    operations.finish_steps(conn, [build.operation.id], "Error", outcome.reason, outcome.host)
    return True


def _waiting(build: Build) -> str:
    """Return the task_state of a build that waits to be scheduled."""
    return states.UNSHELVING if build.is_unshelve else states.SCHEDULING


def count_failure(conn: sa.Connection, host: str, threshold: int) -> bool:
    """Count a failed build against the host; returns whether its service was disabled for it."""
    node_id = conn.execute(sa.select(compute_nodes.c.id).where(compute_nodes.c.host == host)).scalars().first()
    return node_id is not None and registry.count_build_failure(conn, node_id, threshold)


def _active(conn: sa.Connection, operation_uuids: Sequence[str]) -> dict[str, int]:
    return {row[0]: row[1] for row in conn.execute(_ACTIVE, {"uuids": operation_uuids})}


def _lock_nodes(conn: sa.Connection, node_ids: Iterable[int]) -> None:
    conn.execute(_NODES_LOCKED, {"ids": sorted(set(node_ids))}).all()


def _less_building(conn: sa.Connection, counts: Counter[int], succeeded: bool = False) -> None:
    rows = [{"node_id": node_id, "count": count} for node_id, count in sorted(counts.items())]
    if rows:
        conn.execute(_LESS_BUILDING.values(failed_builds=0) if succeeded else _LESS_BUILDING, rows)


def _lock_undeleted(conn: sa.Connection, uuids: Sequence[str]) -> set[str]:
    """Lock the instances, and return those that nobody deletes."""
    rows = conn.execute(_INSTANCES_LOCKED, {"uuids": uuids})
    return {row.uuid for row in rows if not row.deleted and row.task_state != states.DELETING}

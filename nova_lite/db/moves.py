# SPDX-License-Identifier: Apache-2.0
"""Moves on the books: each function is one turn of the story, in its caller's transaction.

A server that is not moving has one allocation, which the server itself owns (migration ""). One that is moving has two:
its own, on the node that its row names, and the half that belongs to the move and names it. The half starts out on the
destination, as a grant that was consumed. When the server changes over (``switch``), row and owner change together:
from then on the half is the one on the source. So whoever ends a move, whichever way, drops the half that names it, and
nobody else ever touches one (Launchpad 1707071: two computes each "healed" the other's half away).

A resize on the same node needs only what the new size has more of: the half is that, before the change, and what the
old size had more of, after it; the node holds the larger of the two all the time. A project's quota is held likewise,
in the migration's held_cores and held_ram.

Each turn is a compare-and-set: it happens if the operation is still active at the step that it is about, and else
nothing happens. Locks are taken in the order that db/grants.py states; a project's quota row comes after the groups and
before the instances, migrations come last.
"""

from __future__ import annotations

import datetime
import uuid as uuid_module
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from oslo_config import cfg

from nova_lite import exception
from nova_lite.db import allocations, instances, operations, quotas
from nova_lite.db.clock import now
from nova_lite.db.instances import Caller, Instance
from nova_lite.db.models import allocations as allocations_table
from nova_lite.db.models import instances as instances_table
from nova_lite.db.models import migrations
from nova_lite.db.operations import Operation
from nova_lite.objects import instance as states
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.group import Group
from nova_lite.objects.move import ABORT, FORCE_COMPLETE
from nova_lite.objects.resources import Resources

# Types, as the API shows them.
RESIZE, MIGRATION, LIVE, EVACUATION = "resize", "migration", "live-migration", "evacuation"

TYPES = {
    operations.RESIZE: RESIZE,
    operations.MIGRATE: MIGRATION,
    operations.LIVE_MIGRATE: LIVE,
    operations.EVACUATE: EVACUATION,
}
_TASKS = {
    operations.RESIZE: states.RESIZE_PREP,
    operations.MIGRATE: states.RESIZE_PREP,
    operations.LIVE_MIGRATE: states.MIGRATING,
    operations.EVACUATE: states.REBUILDING,
}

# Statuses in which a wish makes sense.
_CAN_ABORT = ("queued", "preparing", "running")
_CAN_FORCE = ("running",)


class Migration(NamedTuple):
    """One row of migrations, column by column; flavors are JSON text."""

    id: int
    uuid: str
    instance_uuid: str
    operation_uuid: str
    type: str
    status: str
    open: bool
    source_compute: str
    source_node: str
    source_node_id: int
    dest_compute: str | None
    dest_node: str | None
    dest_node_id: int | None
    dest_host: str | None
    old_flavor: str
    new_flavor: str
    old_vm_state: str
    held_cores: int
    held_ram: int
    wish: str
    shared_disks: bool
    memory_total_bytes: int | None
    memory_processed_bytes: int | None
    memory_remaining_bytes: int | None
    disk_total_bytes: int | None
    disk_processed_bytes: int | None
    disk_remaining_bytes: int | None
    message: str | None
    project_id: str
    user_id: str
    created_at: datetime.datetime
    updated_at: datetime.datetime

    @property
    def is_resize(self) -> bool:
        return self.type == RESIZE

    @property
    def stays(self) -> bool:
        """Tell whether source and destination are one node."""
        return self.dest_node_id == self.source_node_id


COLUMNS = tuple(migrations.c[name] for name in Migration._fields)


@dataclass(frozen=True, slots=True)
class Move:
    """An operation on a move, the move, its server, and the server's group. has_half: the move's claim was made."""

    operation: Operation
    migration: Migration
    instance: Instance
    group: Group | None = None
    has_half: bool = False

    @property
    def attempts(self) -> list[dict[str, str]]:
        """The attempts that failed so far: host and reason."""
        return list(self.operation.arguments.get("attempts", []))

    @property
    def old_flavor(self) -> Flavor:
        return instances.flavor_from(self.migration.old_flavor)

    @property
    def new_flavor(self) -> Flavor:
        return instances.flavor_from(self.migration.new_flavor)


# -- accepted by the API


def begin(
    conn: sa.Connection,
    conf: cfg.ConfigOpts,
    uuid: str,
    *,
    kind: str,
    caller: Caller,
    vm_states: Collection[str],
    task_states: Collection[str | None] | None = (None,),
    flavor: Flavor | None = None,
    host: str | None = None,
    arguments: dict[str, Any] | None = None,
) -> str:
    """Set out to move a server: lock, check, hold quota for a larger size, add the migration and its operation.

    :param kind: operations.RESIZE, MIGRATE, LIVE_MIGRATE or EVACUATE.
    :param flavor: the new size, for a resize.
    :param host: where it is to go, None for wherever a scheduler says.
    :param arguments: what else the operation is told.
    :returns: the operation's uuid.
    :raises InstanceNotFound: there is no such server.
    :raises InstanceLocked: it is locked, and that binds the caller.
    :raises InstanceInvalidState: its vm_state or task_state is none of these.
    :raises QuotaExceeded: the project has no room for the larger size.
    :raises Conflict: it is on no host, or is being moved already.
    """
    accepted = instances.accepted_before(conn, kind, uuid, caller)
    if accepted:
        return accepted
    before = instances.get(conn, uuid)
    now_held = instances.flavor_of(before).resources
    more = flavor.resources.beyond(now_held) if flavor else Resources()
    if more.vcpus or more.memory_mb:
        quotas.reserve(conn, conf, before.project_id, 0, more.vcpus, more.memory_mb, before.user_id)
    row = instances.lock(conn, uuid)
    instances.check_lock(row, caller)
    instances.check_state(row, kind, vm_states, task_states)
    if row.task_state == states.DELETING:
        instances.check_state(row, kind, None)
    if row.host is None or row.node_id is None:
        raise exception.Conflict(f"Instance {uuid} is not ready: it is on no host.")
    if row.flavor != before.flavor:
        raise operations.Moved("the server was resized meanwhile")
    _check_not_moving(conn, row)
    if row.task_state is not None:
        operations.cancel_others(conn, uuid, f"Interrupted by {kind}.")
    migration_uuid = str(uuid_module.uuid4())
    told = {**(arguments or {}), "migration": migration_uuid, "host": host}
    operation = instances.add_operation(conn, kind, [uuid], caller, told)[0]
    conn.execute(
        sa.insert(migrations).values(
            uuid=migration_uuid,
            instance_uuid=uuid,
            operation_uuid=operation,
            type=TYPES[kind],
            status="accepted",
            source_compute=row.host,
            source_node=row.node,
            source_node_id=row.node_id,
            old_flavor=row.flavor,
            new_flavor=msgspec.json.encode(flavor).decode() if flavor else row.flavor,
            old_vm_state=row.vm_state,
            held_cores=more.vcpus,
            held_ram=more.memory_mb,
            project_id=caller.project_id,
            user_id=caller.user_id,
        )
    )
    statement = sa.update(instances_table).where(instances_table.c.id == row.id)
    conn.execute(statement.values(task_state=_TASKS[kind], updated_at=now()))
    return operation


def _check_not_moving(conn: sa.Connection, row: Instance) -> None:
    """Refuse a second move; what an evacuation left on a dead host does not count as one."""
    other = conn.execute(
        sa.select(migrations.c.type, migrations.c.status).where(
            migrations.c.instance_uuid == row.uuid, migrations.c.open.is_(True), migrations.c.status != "done"
        )
    ).first()
    if other:
        raise exception.Conflict(
            f"Instance {row.uuid} is being moved already ({other.type}, {other.status}). Wait until that has ended, "
            "or end it: confirm, revert or abort."
        )


def end(conn: sa.Connection, uuid: str, *, kind: str, caller: Caller) -> str:
    """Set out to confirm or revert a resize or migration that waits for that.

    :param kind: operations.CONFIRM or operations.REVERT.
    :returns: the operation's uuid.
    :raises InstanceNotFound: there is no such server.
    :raises InstanceLocked: it is locked, and that binds the caller.
    :raises InstanceInvalidState: it is not waiting.
    :raises BadRequest: there is no move to end.
    """
    row = instances.lock(conn, uuid)
    accepted = instances.accepted_before(conn, kind, uuid, caller)
    if accepted:
        return accepted
    instances.check_lock(row, caller)
    instances.check_state(row, kind, (states.RESIZED,))
    waiting = sa.and_(migrations.c.instance_uuid == uuid, migrations.c.status == "finished")
    locked = sa.select(migrations.c.uuid, migrations.c.operation_uuid).where(waiting).with_for_update()
    found, moved_by = conn.execute(locked).one_or_none() or (None, None)
    if found is None:
        raise exception.BadRequest("Instance has not been resized.")
    destination = _destination_known_to(conn, moved_by)
    told = {"migration": found, "destination": destination}
    operation = instances.add_operation(conn, kind, [uuid], caller, told)[0]
    confirming = kind == operations.CONFIRM
    conn.execute(
        sa.update(migrations)
        .where(migrations.c.uuid == found)
        .values(status="confirming" if confirming else "reverting", operation_uuid=operation, updated_at=now())
    )
    if not confirming:
        statement = sa.update(instances_table).where(instances_table.c.id == row.id)
        conn.execute(statement.values(task_state=states.RESIZE_REVERTING, updated_at=now()))
    return operation


def _destination_known_to(conn: sa.Connection, operation_uuid: str | None) -> dict[str, Any]:
    operation = operations.get(conn, operation_uuid or "")
    return dict(operation.arguments.get("destination") or {}) if operation else {}


def wish(conn: sa.Connection, uuid: str, migration_id: int, wished: str, caller: Caller) -> None:
    """Note that a live migration is to be aborted, or completed by force; the source's compute acts on it.

    :raises InstanceLocked: the server is locked, and that binds the caller.
    :raises MigrationNotFound: the server has no such live migration.
    :raises BadRequest: it is not in a status in which that can be done.
    """
    row = instances.lock(conn, uuid)
    instances.check_lock(row, caller)
    mine = sa.and_(migrations.c.id == migration_id, migrations.c.instance_uuid == uuid, migrations.c.type == LIVE)
    found = conn.execute(sa.select(migrations.c.status).where(mine).with_for_update()).scalar_one_or_none()
    if found is None:
        raise exception.MigrationNotFound(migration=migration_id)
    allowed = {ABORT: _CAN_ABORT, FORCE_COMPLETE: _CAN_FORCE}[wished]
    if found not in allowed or (wished == ABORT and row.host != _source_of(conn, migration_id)):
        raise exception.BadRequest(
            f"Migration {migration_id} state of instance {uuid} is {found}. Cannot {wished} while the migration is in "
            "this state."
        )
    conn.execute(sa.update(migrations).where(mine).values(wish=wished, updated_at=now()))


def _source_of(conn: sa.Connection, migration_id: int) -> str | None:
    return conn.execute(sa.select(migrations.c.source_compute).where(migrations.c.id == migration_id)).scalar()


def stale_resizes(conn: sa.Connection, seconds: float) -> list[tuple[str, str, str, str]]:
    """Return (instance, project, user, migration) of what has waited so long to be confirmed."""
    waiting = sa.and_(migrations.c.status == "finished", migrations.c.updated_at < now(-seconds))
    columns = (migrations.c.instance_uuid, migrations.c.project_id, migrations.c.user_id, migrations.c.uuid)
    return [tuple(row) for row in conn.execute(sa.select(*columns).where(waiting))]


# -- what the conductor knows of a move

_BY_UUIDS = sa.select(*COLUMNS).where(migrations.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
_HALVES = sa.select(allocations_table.c.migration).where(
    allocations_table.c.migration.in_(sa.bindparam("uuids", expanding=True))
)


def gather(conn: sa.Connection, claimed: Sequence[Operation]) -> list[Move]:
    """Read the migrations, instances and groups of claimed operations; those of deleted instances are left out."""
    uuids = [str(operation.arguments.get("migration")) for operation in claimed]
    moves = {row.uuid: Migration._make(row) for row in conn.execute(_BY_UUIDS, {"uuids": uuids})}
    rows = {row.uuid: row for row in instances.get_many(conn, [operation.instance_uuid for operation in claimed])}
    groups = instances.groups_of(conn, rows.values())
    halves = set(conn.execute(_HALVES, {"uuids": uuids}).scalars())
    return [
        Move(operation, moves[uuid], row, groups.get(row.group_id or 0), uuid in halves)
        for operation, uuid in zip(claimed, uuids, strict=True)
        if uuid in moves and (row := rows.get(operation.instance_uuid)) is not None
    ]


def drop_open(
    conn: sa.Connection, uuids: Sequence[str], status: str, message: str, migration: str | None = None
) -> None:
    """End whatever moves of the servers are on the books, with all that they hold; before their rows are locked.

    :param migration: end only this one.
    """
    mine = sa.and_(migrations.c.instance_uuid.in_(uuids), migrations.c.open.is_(True))
    if migration is not None:
        mine = sa.and_(mine, migrations.c.uuid == migration)
    rows = conn.execute(sa.select(*COLUMNS).where(mine)).all()
    for row in rows:
        allocations.release_half(conn, row.instance_uuid, row.uuid)
        if row.held_cores or row.held_ram:
            owner = instances.get(conn, row.instance_uuid, include_deleted=True)
            quotas.release(conn, owner.project_id, 0, row.held_cores, row.held_ram)
    if rows:
        conn.execute(
            sa.update(migrations)
            .where(migrations.c.id.in_([row.id for row in rows]), migrations.c.open.is_(True))
            .values(status=status, open=False, held_cores=0, held_ram=0, message=message, updated_at=now())
        )

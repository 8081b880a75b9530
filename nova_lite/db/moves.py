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
import json
import uuid as uuid_module
from collections.abc import Collection, Iterable, Sequence
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
from nova_lite.db.models import compute_nodes, migrations, operation_steps
from nova_lite.db.models import grants as grants_table
from nova_lite.db.models import instances as instances_table
from nova_lite.db.models import operations as operations_table
from nova_lite.db.operations import Operation
from nova_lite.objects import instance as states
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.group import Group
from nova_lite.objects.move import ABORT, FORCE_COMPLETE, Progress
from nova_lite.objects.resources import Resources
from nova_lite.objects.selection import Selection

# Types, as the API shows them.
RESIZE, MIGRATION, LIVE, EVACUATION = "resize", "migration", "live-migration", "evacuation"

_TYPES = {
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
    cores, ram = _larger_by(instances.flavor_of(before), flavor or instances.flavor_of(before))
    if cores or ram:
        quotas.reserve(conn, conf, before.project_id, 0, cores, ram)
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
            type=_TYPES[kind],
            status="accepted",
            source_compute=row.host,
            source_node=row.node,
            source_node_id=row.node_id,
            old_flavor=row.flavor,
            new_flavor=msgspec.json.encode(flavor).decode() if flavor else row.flavor,
            old_vm_state=row.vm_state,
            held_cores=cores,
            held_ram=ram,
            project_id=caller.project_id,
            user_id=caller.user_id,
        )
    )
    statement = sa.update(instances_table).where(instances_table.c.id == row.id)
    conn.execute(statement.values(task_state=_TASKS[kind], updated_at=now()))
    return operation


def _larger_by(old: Flavor, new: Flavor) -> tuple[int, int]:
    """Return by how many cores and MiB of memory the new size is larger."""
    return max(0, new.vcpus - old.vcpus), max(0, new.memory_mb - old.memory_mb)


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


def left_behind(conn: sa.Connection, uuid: str) -> list[str]:
    """Return the hosts where an evacuation has left something of the server that is not cleaned up yet."""
    there = sa.and_(migrations.c.instance_uuid == uuid, migrations.c.status == "done", migrations.c.open.is_(True))
    return list(conn.execute(sa.select(migrations.c.source_compute).where(there)).scalars())


# -- turns


def note_placed(
    conn: sa.Connection, move: Move, selection: Selection, step: str, owner: str, lease: float, event: str
) -> bool:
    """Note where a move goes, and that its destination has been told; the claim comes next."""
    if not _moves_on(conn, move, move.operation.step, step, owner, lease):
        return False
    address = sa.select(compute_nodes.c.host_ip).where(compute_nodes.c.id == selection.node_id).scalar_subquery()
    _set_migration(
        conn,
        move,
        dest_compute=selection.host,
        dest_node=selection.node,
        dest_node_id=selection.node_id,
        dest_host=address,
        status="preparing" if move.migration.type == LIVE else "pre-migrating",
    )
    at = operations.database_time(conn)
    operations.drop_open_steps(conn, [move.operation.id])
    operations.add_steps(conn, [move.operation.id], event, at, [selection.host])
    return True


def next_step(
    conn: sa.Connection,
    move: Move,
    step: str,
    owner: str,
    lease: float,
    event: str,
    host: str | None,
    *,
    status: str | None = None,
    task_state: str | None = None,
    arguments: dict[str, Any] | None = None,
) -> bool:
    """End the step that the operation is at and begin the next; tells whether that was still to be done."""
    if instances.lock_if_there(conn, move.instance.uuid) is None:
        return False
    if not _moves_on(conn, move, move.operation.step, step, owner, lease, arguments):
        return False
    at = operations.database_time(conn)
    operations.finish_steps(conn, [move.operation.id])
    operations.add_steps(conn, [move.operation.id], event, at, [host])
    shared = (arguments or {}).get("destination", {}).get("shared")
    told = {} if shared is None else {"shared_disks": bool(shared)}
    if status is not None or told:
        _set_migration(conn, move, **told, **({} if status is None else {"status": status}))
    if task_state is not None:
        _set_instance(conn, move, task_state=task_state)
    return True


def _moves_on(
    conn: sa.Connection,
    move: Move,
    before: str,
    step: str,
    owner: str | None,
    lease: float,
    arguments: dict[str, Any] | None = None,
) -> bool:
    mine = sa.and_(
        operations_table.c.uuid == move.operation.uuid,
        operations_table.c.status == operations.ACTIVE,
        operations_table.c.step == before,
    )
    values: dict[str, Any] = {} if arguments is None else {"arguments": json.dumps(arguments)}
    moved = conn.execute(
        sa.update(operations_table)
        .where(mine)
        .values(step=step, owner=owner, lease_expires_at=now(lease), updated_at=now(), **values)
    )
    return bool(moved.rowcount)


def begin_step(conn: sa.Connection, operation_uuid: str, step: str, server: str, lease: float) -> bool:
    """Let a compute begin a step: it holds the operation from now on; False if the step is no longer to be done.

    So a message that comes late, or twice, does nothing.
    """
    mine = sa.and_(
        operations_table.c.uuid == operation_uuid,
        operations_table.c.status == operations.ACTIVE,
        operations_table.c.step == step,
    )
    taken = conn.execute(
        sa.update(operations_table)
        .where(mine)
        .values(owner=server, lease_expires_at=now(lease), updated_at=operations_table.c.updated_at)
    )
    return bool(taken.rowcount)


def note_progress(conn: sa.Connection, migration_uuid: str, operation_uuid: str, progress: Progress) -> str:
    """Write down how far a live migration is; return what is wished of it: abort also if its operation has ended."""
    active = sa.select(operations_table.c.id).where(
        operations_table.c.uuid == operation_uuid, operations_table.c.status == operations.ACTIVE
    )
    if conn.execute(active).first() is None:
        return ABORT
    mine = migrations.c.uuid == migration_uuid
    conn.execute(
        sa.update(migrations)
        .where(mine, migrations.c.open.is_(True))
        .values(
            status=sa.case((migrations.c.status.in_(("queued", "preparing")), "running"), else_=migrations.c.status),
            memory_total_bytes=progress.memory_total,
            memory_processed_bytes=progress.memory_processed,
            memory_remaining_bytes=progress.memory_remaining,
            disk_total_bytes=progress.disk_total,
            disk_processed_bytes=progress.disk_processed,
            disk_remaining_bytes=progress.disk_remaining,
            updated_at=now(),
        )
    )
    return str(conn.execute(sa.select(migrations.c.wish).where(mine)).scalar_one())


def retry_elsewhere(conn: sa.Connection, move: Move, host: str, reason: str) -> bool:
    """Give the half back that a destination held which failed, and let the move be scheduled again."""
    arguments = {**move.operation.arguments, "attempts": [*move.attempts, {"host": host, "reason": reason}]}
    arguments.pop("destination", None)
    allocations.release_half(conn, move.instance.uuid, move.migration.uuid)
    if instances.lock_if_there(conn, move.instance.uuid) is None:
        return False
    if not _moves_on(conn, move, move.operation.step, "accepted", None, 0.0, arguments):
        return False
    operations.finish_steps(conn, [move.operation.id], "Error", reason, host)
    _set_migration(conn, move, status="accepted", dest_compute=None, dest_node=None, dest_node_id=None, dest_host=None)
    return True


def schedule_again(conn: sa.Connection, refused: Sequence[tuple[str, str]]) -> list[str]:
    """Put moves whose claim was refused back to where they wait for a scheduler; nobody's failure.

    One that has a grant or its half is under way, and stays: what was refused was an old message.

    :param refused: (operation, migration) of each.
    :returns: the operations that wait now.
    """
    waiting = []
    for operation, migration in refused:
        under_way = any(
            conn.execute(sa.select(table.c.id).where(table.c.migration == migration)).first()
            for table in (grants_table, allocations_table)
        )
        if under_way:
            continue
        mine = sa.and_(operations_table.c.uuid == operation, operations_table.c.status == operations.ACTIVE)
        values = {"step": "accepted", "owner": None, "lease_expires_at": now(), "updated_at": now()}
        if conn.execute(sa.update(operations_table).where(mine).values(**values)).rowcount:
            waiting.append(operation)
    return waiting


def switch(conn: sa.Connection, move: Move, amounts: Resources) -> None:
    """Let the server and its move change places: what the server owned is the half now, and the half is the server's.

    To be called with nothing locked yet, and followed in the same transaction by what makes it visible.

    :param amounts: what the server takes afterwards.
    :raises Moved: the move has no half; it ended meanwhile.
    """
    migration = move.migration
    allocations.lock_nodes(conn, [migration.source_node_id, migration.dest_node_id])
    mine = allocations_table.c.consumer == move.instance.uuid
    held = {row.migration: row for row in conn.execute(sa.select(allocations_table).where(mine).with_for_update())}
    half, own = held.get(migration.uuid), held.get("")
    if half is None:
        raise operations.Moved("the move has ended")
    if own is None:
        _write(conn, half.id, migration="")
    elif migration.stays:
        # On one node the two are the larger of the sizes all the time (Launchpad 1790204).
        before = Resources(own.vcpus, own.memory_mb, own.disk_gb)
        _write(conn, own.id, **_parts(amounts))
        _write(conn, half.id, **_parts(more_than(before, amounts)))
    else:
        # The key on consumer and migration is unique: each name must be free before it is given.
        _write(conn, own.id, migration="switching")
        _write(conn, half.id, migration="")
        _write(conn, own.id, migration=migration.uuid)


def more_than(wanted: Resources, held: Resources) -> Resources:
    """Return what of each resource is wanted beyond what is held."""
    return Resources(
        max(0, wanted.vcpus - held.vcpus),
        max(0, wanted.memory_mb - held.memory_mb),
        max(0, wanted.disk_gb - held.disk_gb),
    )


def _write(conn: sa.Connection, allocation_id: int, **values: Any) -> None:
    conn.execute(sa.update(allocations_table).where(allocations_table.c.id == allocation_id).values(**values))


def _parts(amounts: Resources) -> dict[str, int]:
    return {"vcpus": amounts.vcpus, "memory_mb": amounts.memory_mb, "disk_gb": amounts.disk_gb}


def finish_resize(conn: sa.Connection, move: Move, power_state: int, addresses: dict[str, Any] | None) -> bool:
    """Publish a resize or migration, which waits from now on to be confirmed or reverted."""
    if not _is_at(conn, move):
        return False
    switch(conn, move, move.new_flavor.resources)
    _lock_living(conn, move)
    _end_operation(conn, move, operations.SUCCEEDED)
    cores, ram = _larger_by(move.new_flavor, move.old_flavor)
    _set_migration(conn, move, status="finished", held_cores=cores, held_ram=ram)
    _set_instance(
        conn,
        move,
        **_destination(move),
        **_size(move.migration.new_flavor, move.new_flavor),
        **({} if addresses is None else {"addresses": json.dumps(addresses)}),
        vm_state=states.RESIZED,
        task_state=None,
        power_state=power_state,
        launched_at=now(),
    )
    return True


def confirm(conn: sa.Connection, move: Move, message: str | None = None) -> bool:
    """Drop what the server left at its source; the move is over.

    :param message: why something was left there, to be cleaned up by its compute when that returns.
    """
    if not _is_at(conn, move):
        return False
    allocations.release_half(conn, move.instance.uuid, move.migration.uuid)
    _give_back_quota(conn, move)
    _lock_living(conn, move)
    _end_operation(conn, move, operations.SUCCEEDED, message)
    _set_migration(conn, move, status="confirmed", open=False, held_cores=0, held_ram=0, message=message)
    _set_instance(conn, move, vm_state=_vm_state(move), task_state=None)
    return True


def revert(conn: sa.Connection, move: Move, power_state: int, failure: str | None = None) -> bool:
    """Publish that the server is back at its source in its old size, and drop what it held at the destination.

    :param failure: why it could not be taken up there; then it is in ERROR, with its disks and its place.
    """
    if not _is_at(conn, move):
        return False
    switch(conn, move, move.old_flavor.resources)
    allocations.release_half(conn, move.instance.uuid, move.migration.uuid)
    # The server and its move held the larger size; the server has the old one now.
    cores, ram = _larger_by(move.old_flavor, move.new_flavor)
    if cores or ram:
        quotas.release(conn, move.instance.project_id, 0, cores, ram)
    _lock_living(conn, move)
    _end_operation(conn, move, operations.FAILED if failure else operations.SUCCEEDED, failure)
    _set_migration(conn, move, status="reverted", open=False, held_cores=0, held_ram=0, message=failure)
    ending = _fault(failure) if failure else {"vm_state": _vm_state(move)}
    _set_instance(
        conn,
        move,
        host=move.migration.source_compute,
        node=move.migration.source_node,
        node_id=move.migration.source_node_id,
        **_size(move.migration.old_flavor, move.old_flavor),
        **ending,
        task_state=None,
        power_state=power_state,
    )
    return True


def switch_over(conn: sa.Connection, move: Move, step: str, owner: str, lease: float, event: str) -> bool:
    """Note that a live migration's guest runs at the destination; what is left to do is tidying up."""
    if not _is_at(conn, move):
        return False
    switch(conn, move, move.new_flavor.resources)
    _lock_living(conn, move)
    if not _moves_on(conn, move, move.operation.step, step, owner, lease):
        raise operations.Moved("the move has ended")
    at = operations.database_time(conn)
    operations.finish_steps(conn, [move.operation.id])
    operations.add_steps(conn, [move.operation.id], event, at, [move.migration.dest_compute])
    _set_migration(conn, move, status="running")
    _set_instance(conn, move, **_destination(move))
    return True


def complete(conn: sa.Connection, move: Move, power_state: int | None = None, message: str | None = None) -> bool:
    """Publish a live migration as done, and drop what the server held at its source.

    :param message: what could not be tidied up, if anything; the server is none the worse for it.
    """
    if not _is_at(conn, move):
        return False
    allocations.release_half(conn, move.instance.uuid, move.migration.uuid)
    _lock_living(conn, move)
    _end_operation(conn, move, operations.SUCCEEDED, message)
    _set_migration(conn, move, status="completed", open=False, message=message)
    _set_instance(conn, move, task_state=None, **({} if power_state is None else {"power_state": power_state}))
    return True


def finish_evacuation(
    conn: sa.Connection, move: Move, power_state: int, addresses: dict[str, Any] | None, shared: bool
) -> bool:
    """Publish a server as evacuated. The half on the dead host stays until that has cleaned up, or is deleted."""
    if not _is_at(conn, move):
        return False
    switch(conn, move, move.new_flavor.resources)
    # What is on a dead host is no member of the server's group any more.
    half = allocations_table.c.migration == move.migration.uuid
    conn.execute(sa.update(allocations_table).where(half).values(group_id=None))
    _lock_living(conn, move)
    _end_operation(conn, move, operations.SUCCEEDED)
    _set_migration(conn, move, status="done", shared_disks=shared)
    running = power_state == states.RUNNING
    _set_instance(
        conn,
        move,
        **_destination(move),
        **({} if addresses is None else {"addresses": json.dumps(addresses)}),
        vm_state=states.ACTIVE if running else states.STOPPED,
        task_state=None,
        power_state=power_state,
        fault_code=None,
        fault_message=None,
        fault_at=None,
        launched_at=now(),
    )
    return True


def undo(conn: sa.Connection, move: Move, status: str, message: str, power_state: int | None = None) -> bool:
    """End a move that did not happen: the server is what it was, where it was, and the move holds nothing more.

    :param status: the migration's: error, failed or cancelled.
    :param power_state: what the source's hypervisor shows, if it was asked.
    """
    if not _is_at(conn, move):
        return False
    allocations.release_half(conn, move.instance.uuid, move.migration.uuid)
    _give_back_quota(conn, move)
    _lock_living(conn, move)
    ended = operations.CANCELLED if status == "cancelled" else operations.FAILED
    _end_operation(conn, move, ended, message)
    _set_migration(conn, move, status=status, open=False, held_cores=0, held_ram=0, message=message)
    values: dict[str, Any] = {} if power_state is None else {"power_state": power_state}
    _set_instance(conn, move, vm_state=move.migration.old_vm_state, task_state=None, **values)
    return True


def fail(conn: sa.Connection, move: Move, message: str) -> bool:
    """End a move that could not be undone: the server is in ERROR where its row says, and keeps its place there."""
    if not _is_at(conn, move):
        return False
    allocations.release_half(conn, move.instance.uuid, move.migration.uuid)
    _give_back_quota(conn, move)
    _lock_living(conn, move)
    _end_operation(conn, move, operations.FAILED, message)
    _set_migration(conn, move, status="error", open=False, held_cores=0, held_ram=0, message=message)
    _set_instance(conn, move, **_fault(message), task_state=None)
    return True


def stay_resized(conn: sa.Connection, move: Move, message: str) -> bool:
    """End a revert that could not begin: the server stays where and what it is, to be confirmed or reverted."""
    if not _is_at(conn, move):
        return False
    _lock_living(conn, move)
    _end_operation(conn, move, operations.FAILED, message)
    _set_migration(conn, move, status="finished", message=message)
    _set_instance(conn, move, task_state=None)
    return True


def close(conn: sa.Connection, migration_uuid: str) -> bool:
    """Drop the half on a host that was evacuated and has cleaned up; tells whether that was still to be done."""
    mine = sa.and_(migrations.c.uuid == migration_uuid, migrations.c.open.is_(True), migrations.c.status == "done")
    row = conn.execute(sa.select(migrations.c.instance_uuid).where(mine)).first()
    if row is None:
        return False
    allocations.release_half(conn, row.instance_uuid, migration_uuid)
    return bool(
        conn.execute(
            sa.update(migrations).where(mine).values(status="completed", open=False, updated_at=now())
        ).rowcount
    )


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


# -- what is left on hosts


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


def remains(conn: sa.Connection, where: Iterable[tuple[str, str]]) -> list[Remains]:
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
            .where(operations_table.c.instance_uuid.in_(uuids), operations_table.c.kind.in_(list(_TYPES)))
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


# -- parts of turns


def _is_at(conn: sa.Connection, move: Move) -> bool:
    """Tell whether the operation is still at the step that is about to end; looked at before anything is locked."""
    mine = sa.and_(
        operations_table.c.uuid == move.operation.uuid,
        operations_table.c.status == operations.ACTIVE,
        operations_table.c.step == move.operation.step,
    )
    return conn.execute(sa.select(operations_table.c.id).where(mine)).first() is not None


def _lock_living(conn: sa.Connection, move: Move) -> None:
    """Lock the server's row.

    :raises Moved: it is being deleted; what this transaction has done so far is not to be.
    """
    row = instances.lock_if_there(conn, move.instance.uuid)
    if row is None or row.task_state == states.DELETING:
        raise operations.Moved("the server is being deleted")


def _end_operation(conn: sa.Connection, move: Move, status: str, message: str | None = None) -> None:
    """:raises Moved: it ended, or took another step, since it was looked at."""
    if not _is_at(conn, move) or not operations.finish(conn, [move.operation.uuid], status, message):
        raise operations.Moved("the move has ended")
    result = "Success" if status == operations.SUCCEEDED else "Error"
    operations.finish_steps(conn, [move.operation.id], result, message)


def _give_back_quota(conn: sa.Connection, move: Move) -> None:
    cores, ram = move.migration.held_cores, move.migration.held_ram
    if cores or ram:
        quotas.release(conn, move.instance.project_id, 0, cores, ram)


def _destination(move: Move) -> dict[str, Any]:
    migration = move.migration
    return {"host": migration.dest_compute, "node": migration.dest_node, "node_id": migration.dest_node_id}


def _size(text: str, flavor: Flavor) -> dict[str, Any]:
    return {"flavor": text, "flavorid": flavor.flavorid, **_parts(flavor.resources)}


def _vm_state(move: Move) -> str:
    """What the server was before it was moved."""
    return states.ACTIVE if move.migration.old_vm_state == states.ACTIVE else states.STOPPED


def _fault(message: str) -> dict[str, Any]:
    return {"vm_state": states.ERROR, "fault_code": 500, "fault_message": message, "fault_at": now()}


def _set_migration(conn: sa.Connection, move: Move, **values: Any) -> None:
    statement = sa.update(migrations).where(migrations.c.uuid == move.migration.uuid)
    conn.execute(statement.values(**values, updated_at=now()))


def _set_instance(conn: sa.Connection, move: Move, **values: Any) -> None:
    statement = sa.update(instances_table).where(instances_table.c.uuid == move.instance.uuid)
    conn.execute(statement.values(**values, updated_at=now()))

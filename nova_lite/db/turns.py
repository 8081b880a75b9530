# SPDX-License-Identifier: Apache-2.0
"""Turns of a move under way: what the conductor writes as its steps are done, each in its caller's transaction.

Each turn is a compare-and-set: it happens if the operation is still active at the step that it is about, and else
nothing happens. Who owns which allocation between turns, and the order of locks, is said in db/moves.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from nova_lite.db import allocations, instances, operations, quotas
from nova_lite.db.clock import now
from nova_lite.db.models import allocations as allocations_table
from nova_lite.db.models import compute_nodes, migrations
from nova_lite.db.models import grants as grants_table
from nova_lite.db.models import instances as instances_table
from nova_lite.db.models import operations as operations_table
from nova_lite.db.moves import LIVE, Move
from nova_lite.objects import instance as states
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.move import ABORT, Progress
from nova_lite.objects.resources import Resources
from nova_lite.objects.selection import Selection


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
        _write(conn, half.id, **_parts(before.beyond(amounts)))
    else:
        # The key on consumer and migration is unique: each name must be free before it is given.
        _write(conn, own.id, migration="switching")
        _write(conn, half.id, migration="")
        _write(conn, own.id, migration=migration.uuid)


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
    cores, ram = _larger_by(move.old_flavor, move.new_flavor)
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
    cores, ram = _larger_by(move.new_flavor, move.old_flavor)
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


def _larger_by(new: Flavor, old: Flavor) -> tuple[int, int]:
    """Return by how many cores and MiB of memory one size is larger than the other."""
    more = new.resources.beyond(old.resources)
    return more.vcpus, more.memory_mb


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

# SPDX-License-Identifier: Apache-2.0
"""Actions on servers as the conductor writes them: how they end, and what the hypervisor reports by itself.

Each function is one turn of the story in its caller's transaction; a newer action that holds the server's task_state
by now is never undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from nova_lite.db import addresses, allocations, images, instances, left_behind, moves, operations, quotas
from nova_lite.db.clock import now
from nova_lite.db.models import instances as instances_table
from nova_lite.db.operations import Operation
from nova_lite.objects import instance as states

# The vm_state that a power state means, outside of any action.
_VM_STATES = {
    states.RUNNING: states.ACTIVE,
    states.POWER_PAUSED: states.PAUSED,
    states.SHUTDOWN: states.STOPPED,
    states.CRASHED: states.STOPPED,
    states.POWER_SUSPENDED: states.SUSPENDED,
}
# A server whose guest is new.
LAUNCHED_NOW = {"launched_at": now()}
# What a server is by its power state alone. One that is rescued or shelved stays so, whatever its domain does.
_BY_POWER = (states.ACTIVE, states.STOPPED, states.PAUSED, states.SUSPENDED)
# Those besides of which the power state is kept up to date.
_POWERED = (*_BY_POWER, states.RESCUED, states.SHELVED)


def vm_state_of(vm_state: str, power_state: int) -> str:
    """Return what a server that was in vm_state is, now that its domain is found in power_state."""
    return _VM_STATES.get(power_state, vm_state) if vm_state in _BY_POWER else vm_state


def hand_to_compute(
    conn: sa.Connection, claimed: Sequence[Operation], server: str, lease: float, event: str, host: str | None
) -> None:
    """Note that a compute works on these operations from now on."""
    at = operations.database_time(conn)
    operations.hand_over(conn, [operation.uuid for operation in claimed], server, "handed", lease)
    operations.add_steps(conn, [operation.id for operation in claimed], event, at, [host] * len(claimed))


def note_progress(conn: sa.Connection, operation_uuid: str, task_state: str, saving: bool) -> None:
    """Show what is done now in an operation that has not ended; one that has begun to be deleted stays that.

    :param saving: whether the operation's image, if it has a row, is to be shown as being saved.
    """
    operation = operations.get(conn, operation_uuid)
    if operation is None:
        return
    row = instances.lock_if_there(conn, operation.instance_uuid)
    if row is None or row.task_state in (None, states.DELETING) or not operations.is_active(conn, operation_uuid):
        return
    conn.execute(
        sa.update(instances_table).where(instances_table.c.id == row.id).values(task_state=task_state, updated_at=now())
    )
    if saving:
        images.advance(conn, operation.arguments["image_id"], (images.QUEUED,), images.SAVING)


def complete(conn: sa.Connection, operation: Operation, power_state: int, vm_state: str, **values: Any) -> bool:
    """Publish the new state of a server whose action succeeded, and end the operation.

    :param values: further columns of the server that are new.
    """
    values |= {"vm_state": vm_state, "power_state": power_state}
    return _end(conn, operation, operations.SUCCEEDED, None, values)


def fail(
    conn: sa.Connection,
    operation: Operation,
    message: str,
    power_state: int | None = None,
    error: bool = False,
    **values: Any,
) -> bool:
    """End an action that failed: the server stays what it was, or goes to ERROR if that cannot be said.

    :param power_state: what the hypervisor shows afterwards, if it was asked.
    :param values: columns of the server that get other values with it.
    """
    values |= {"fault_code": 500, "fault_message": message, "fault_at": now()}
    row = instances.lock_if_there(conn, operation.instance_uuid)
    if row is None:
        return False
    if power_state is not None:
        values["power_state"] = power_state
        # An ERROR that turns out to be over ends here.
        before = states.ACTIVE if row.vm_state == states.ERROR and power_state in _VM_STATES else row.vm_state
        values["vm_state"] = vm_state_of(before, power_state)
    if error:
        values["vm_state"] = states.ERROR
    return _end(conn, operation, operations.FAILED, message, values)


def _end(conn: sa.Connection, operation: Operation, status: str, message: str | None, values: dict[str, Any]) -> bool:
    row = instances.lock_if_there(conn, operation.instance_uuid)
    if row is None or not operations.finish(conn, [operation.uuid], status, message):
        return False
    conn.execute(
        sa.update(instances_table)
        .where(instances_table.c.id == row.id)
        .values(task_state=None, updated_at=now(), **values)
    )
    result = "Success" if status == operations.SUCCEEDED else "Error"
    operations.finish_steps(conn, [operation.id], result, message)
    return True


def finish_deletes(conn: sa.Connection, claimed: Sequence[Operation], *, domains_gone: bool = False) -> list[str]:
    """Free the books of deleted servers and mark their rows, all in one; return the uuids of those deleted now.

    Locks the nodes (in ``release``), the projects' quota rows, the instances, then addresses.

    :param domains_gone: whether the servers' hosts have removed their domains, so that nobody uses their addresses.
    """
    # One that was given up since, as by an administrator who reset the server's state, frees nothing.
    rows = [
        row
        for row in instances.get_many(conn, sorted({operation.instance_uuid for operation in claimed}))
        if row.task_state == states.DELETING
    ]
    uuids = sorted(row.uuid for row in rows)
    building = sa.select(instances_table.c.uuid).where(
        instances_table.c.uuid.in_(uuids), instances_table.c.vm_state.in_(states.BUILT_ANEW)
    )
    were_building = set(conn.execute(building).scalars())
    for mine, flag in ((were_building, True), (set(uuids) - were_building, False)):
        if mine:
            allocations.release(conn, mine, were_building=flag)
    left = _places_left(conn, rows, domains_gone)
    moves.drop_open(conn, uuids, "error", "The server was deleted.")
    for project_id in sorted({row.project_id for row in rows}):
        mine_rows = [row for row in rows if row.project_id == project_id]
        flavors = [instances.flavor_of(row) for row in mine_rows]
        cores, ram = sum(flavor.vcpus for flavor in flavors), sum(flavor.memory_mb for flavor in flavors)
        quotas.release(conn, project_id, len(mine_rows), cores, ram)
    marked = conn.execute(
        sa.update(instances_table)
        .where(
            instances_table.c.id.in_([row.id for row in rows]),
            instances_table.c.deleted == 0,
            instances_table.c.task_state == states.DELETING,
        )
        .values(
            deleted=instances_table.c.id,
            deleted_at=now(),
            terminated_at=now(),
            updated_at=now(),
            vm_state=states.DELETED,
            task_state=None,
            power_state=states.NOSTATE,
            addresses="{}",
        )
    ).rowcount
    if marked != len(rows):
        raise operations.Moved("another conductor finished some of these deletes, or they were given up")
    if left:
        addresses.release(conn, list(left), left)
    operations.finish(conn, [operation.uuid for operation in claimed], operations.SUCCEEDED)
    operations.finish_steps(conn, [operation.id for operation in claimed])
    return [row.uuid for row in rows]


def _places_left(
    conn: sa.Connection, rows: Sequence[instances.Instance], domains_gone: bool
) -> dict[str, set[addresses.Place]]:
    """Return where a domain may be left of each of the servers that have an address."""
    mine = [row for row in rows if addresses.has_address(row.networks)]
    if not mine:
        return {}
    left: dict[str, set[addresses.Place]] = {row.uuid: set() for row in mine}
    for row in mine:
        if row.host and not domains_gone:
            left[row.uuid].add((row.host, row.node or ""))
    homes = {row.uuid: row.host for row in mine if domains_gone}
    places = [*left_behind.other_places(conn, sorted(left)), *left_behind.attempted_places(conn, sorted(left))]
    for uuid, host, node in places:
        if homes.get(uuid) != host:
            left[uuid].add((host, node))
    return left


def report_power_state(conn: sa.Connection, host: str, uuid: str, power_state: int) -> bool:
    """Take over what the hypervisor shows of a server, if nothing is being done to it; returns whether it changed.

    A server that was ACTIVE and is found off is SHUTOFF; one found running is ACTIVE; a rescued or shelved one stays
    that. Nobody is stopped or started for it: the report says what is, and guessing what should be has switched off
    servers that had just been rebooted (Launchpad 1443186).
    """
    row = instances.lock_if_there(conn, uuid)
    if row is None or row.host != host or row.task_state is not None or row.vm_state not in _POWERED:
        return False
    vm_state = vm_state_of(row.vm_state, power_state)
    if (vm_state, power_state) == (row.vm_state, row.power_state):
        return False
    conn.execute(
        sa.update(instances_table)
        .where(instances_table.c.id == row.id)
        .values(vm_state=vm_state, power_state=power_state, updated_at=now())
    )
    return True


def deleted(conn: sa.Connection, uuids: Sequence[str]) -> set[str]:
    """Return those of the servers whose rows say that they are deleted: the proof that a domain may be destroyed."""
    statement = sa.select(instances_table.c.uuid).where(
        instances_table.c.uuid.in_(uuids), instances_table.c.deleted != 0
    )
    return set(conn.execute(statement).scalars())


def expected_on(conn: sa.Connection, hosts: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return uuid -> (host, power_state) of the servers that the books have on the hosts and that are at rest."""
    statement = sa.select(instances_table.c.uuid, instances_table.c.host, instances_table.c.power_state).where(
        instances_table.c.host.in_(hosts), instances_table.c.deleted == 0, instances_table.c.task_state.is_(None)
    )
    return {row[0]: (row[1], row[2]) for row in conn.execute(statement)}


def known(conn: sa.Connection, uuids: Sequence[str]) -> set[str]:
    """Return those of the uuids that there is an instance of, deleted or not."""
    return set(conn.execute(sa.select(instances_table.c.uuid).where(instances_table.c.uuid.in_(uuids))).scalars())

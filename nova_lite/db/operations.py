# SPDX-License-Identifier: Apache-2.0
"""Operations: every accepted request as a row, with the lease of whoever works on it, and its steps.

An operation is what os-instance-actions shows: the action is the operation, its events are the steps. ``updated_at``
tells when it took its last step; who holds its lease, and for how long, does not touch it.
"""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exception

from nova_lite.db.clock import Timestamp, later, microseconds, now
from nova_lite.db.models import operation_steps, operations, services

ACTIVE, SUCCEEDED, FAILED, CANCELLED = "active", "succeeded", "failed", "cancelled"

# A hint that is not lost arrives within this time.
_HINT_GRACE = datetime.timedelta(seconds=5)

# Kinds, by the names that the API shows as actions.
CREATE, DELETE, START, STOP, REBOOT = "create", "delete", "start", "stop", "reboot"
RESIZE, MIGRATE, LIVE_MIGRATE, EVACUATE = "resize", "migrate", "live-migration", "evacuate"
CONFIRM, REVERT = "confirmResize", "revertResize"
PAUSE, UNPAUSE, SUSPEND, RESUME = "pause", "unpause", "suspend", "resume"
REBUILD = "rebuild"
RESCUE, UNRESCUE = "rescue", "unrescue"
SHELVE, SHELVE_OFFLOAD, UNSHELVE = "shelve", "shelveOffload", "unshelve"
CREATE_IMAGE, CREATE_BACKUP = "createImage", "createBackup"


class Moved(db_exception.DBDeadlock):
    """Rows changed between being read and being written: the whole transaction is to be run again, as after a
    deadlock."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One accepted request. step is where it stands; arguments are the kind's own."""

    id: int
    uuid: str
    kind: str
    instance_uuid: str
    project_id: str
    user_id: str
    request_id: str
    status: str
    step: str
    owner: str | None
    attempt: int
    arguments: dict[str, Any]
    message: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime
    finished_at: datetime.datetime | None


@dataclass(frozen=True, slots=True)
class Step:
    """One event of an action."""

    event: str
    host: str | None
    started_at: datetime.datetime
    finished_at: datetime.datetime | None
    result: str | None
    details: str | None


_COLUMNS = tuple(operations.c[name] for name in Operation.__dataclass_fields__)


def _operation(row: sa.Row[Any]) -> Operation:
    values = dict(row._mapping)
    values["arguments"] = json.loads(values["arguments"])
    return Operation(**values)


# Statements are built once, since building one costs more than executing it.
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
_ACTIVE = sa.and_(operations.c.uuid.in_(_UUIDS), operations.c.status == ACTIVE)
_INSERT = sa.insert(operations)
_FREE = (
    sa.select(*_COLUMNS)
    .where(_ACTIVE, sa.or_(operations.c.owner.is_(None), operations.c.lease_expires_at < now()))
    .order_by(operations.c.id)
    .with_for_update()
)
_TAKE = (
    sa.update(operations)
    .where(operations.c.id.in_(_IDS))
    .values(owner=sa.bindparam("new_owner"), lease_expires_at=later("lease"), updated_at=operations.c.updated_at)
)
_HAND_OVER = (
    sa.update(operations)
    .where(_ACTIVE)
    .values(
        owner=sa.bindparam("new_owner"),
        step=sa.bindparam("new_step"),
        lease_expires_at=later("lease"),
        updated_at=now(),
    )
)
_STILL_ACTIVE = sa.select(operations.c.uuid).where(_ACTIVE).with_for_update()
_FINISH = (
    sa.update(operations)
    .where(operations.c.uuid.in_(_UUIDS))
    .values(
        status=sa.bindparam("new_status"),
        message=sa.bindparam("new_message"),
        owner=None,
        finished_at=now(),
        updated_at=now(),
    )
)
_BY_UUIDS = sa.select(*_COLUMNS).where(operations.c.uuid.in_(_UUIDS)).order_by(operations.c.id)
_TIME = sa.select(sa.type_coerce(now(), Timestamp))
_ADD_STEPS = sa.insert(operation_steps)
_FINISH_STEPS = (
    sa.update(operation_steps)
    .where(operation_steps.c.operation_id.in_(_IDS), operation_steps.c.finished_at.is_(None))
    .values(finished_at=now(), result=sa.bindparam("new_result"), details=sa.bindparam("new_details"))
)


def add(
    conn: sa.Connection,
    kind: str,
    instance_uuids: Sequence[str],
    *,
    project_id: str,
    user_id: str,
    request_id: str,
    step: str = "accepted",
    arguments: dict[str, Any] | None = None,
    at: datetime.datetime | None = None,
) -> list[str]:
    """Write one operation for each instance, owned by nobody yet; return their uuids in the same order.

    To be called in the transaction that sets the state which the operation will change. A sweep leaves the operation
    alone for as long as its hint may be on the way.

    :param at: the database's time (``database_time``), if the caller knows it already.
    """
    at = at or database_time(conn)
    times = {"created_at": at, "updated_at": at, "lease_expires_at": at + _HINT_GRACE}
    rows = [
        {
            "uuid": str(uuid.uuid4()),
            "kind": kind,
            "instance_uuid": instance_uuid,
            "project_id": project_id,
            "user_id": user_id,
            "request_id": request_id,
            "status": ACTIVE,
            "step": step,
            "arguments": json.dumps(arguments or {}),
            **times,
        }
        for instance_uuid in instance_uuids
    ]
    conn.execute(_INSERT, rows)
    return [str(row["uuid"]) for row in rows]


def claim(conn: sa.Connection, uuids: Sequence[str], owner: str, lease: float) -> list[Operation]:
    """Take the lease of those of the operations that are active and that nobody holds; return them.

    A compare-and-set: of two owners that ask for one operation at once, one gets it.
    """
    locked = conn.execute(_FREE, {"uuids": uuids}).all()
    return _take(conn, locked, owner, lease)


def claim_abandoned(conn: sa.Connection, owner: str, lease: float, limit: int) -> list[Operation]:
    """Take over active operations whose lease ran out, the oldest first."""
    abandoned = sa.and_(operations.c.status == ACTIVE, operations.c.lease_expires_at < now())
    statement = sa.select(*_COLUMNS).where(abandoned).order_by(operations.c.lease_expires_at).limit(limit)
    locked = conn.execute(statement.with_for_update(skip_locked=True)).all()
    return _take(conn, locked, owner, lease)


def _take(conn: sa.Connection, locked: Sequence[sa.Row[Any]], owner: str, lease: float) -> list[Operation]:
    if locked:
        ids = [row[0] for row in locked]
        conn.execute(_TAKE, {"ids": ids, "new_owner": owner, "lease": microseconds(lease)})
    return [_operation(row) for row in locked]


def hand_over(conn: sa.Connection, uuids: Sequence[str], owner: str, step: str, lease: float) -> None:
    """Note who works on active operations from now on, and at which step they are."""
    values = {"new_owner": owner, "new_step": step, "lease": microseconds(lease)}
    conn.execute(_HAND_OVER, {"uuids": uuids, **values})


def renew(conn: sa.Connection, uuids: Sequence[str], owner: str, lease: float) -> None:
    """Renew the leases that the owner still holds."""
    conn.execute(
        sa.update(operations)
        .where(operations.c.uuid.in_(uuids), operations.c.status == ACTIVE, operations.c.owner == owner)
        .values(lease_expires_at=now(lease), updated_at=operations.c.updated_at)
    )


def abandon(conn: sa.Connection, owner: str) -> int:
    """Let go of all that an owner held, because it starts anew; sweeps take over at once. Returns how many."""
    return conn.execute(
        sa.update(operations)
        .where(operations.c.owner == owner, operations.c.status == ACTIVE)
        .values(lease_expires_at=now(), updated_at=operations.c.updated_at)
    ).rowcount


def release(conn: sa.Connection, uuids: Sequence[str], owner: str) -> None:
    """Let go of operations that the owner holds and cannot take further; a sweep takes over at once."""
    conn.execute(
        sa.update(operations)
        .where(operations.c.uuid.in_(uuids), operations.c.owner == owner, operations.c.status == ACTIVE)
        .values(lease_expires_at=now(), updated_at=operations.c.updated_at)
    )


def begin_again(conn: sa.Connection, operation_uuid: str) -> None:
    """Let an operation that goes on with another part wait for whoever claims it."""
    conn.execute(
        sa.update(operations)
        .where(operations.c.uuid == operation_uuid, operations.c.status == ACTIVE)
        .values(step="accepted", owner=None, lease_expires_at=now(), updated_at=now())
    )


def is_held(conn: sa.Connection, operation_uuid: str, owner: str) -> bool:
    """Tell whether the owner still works on the operation."""
    mine = sa.and_(operations.c.uuid == operation_uuid, operations.c.owner == owner, operations.c.status == ACTIVE)
    return conn.execute(sa.select(operations.c.id).where(mine)).first() is not None


def is_active(conn: sa.Connection, operation_uuid: str) -> bool:
    """Tell whether the operation has not ended."""
    mine = sa.and_(operations.c.uuid == operation_uuid, operations.c.status == ACTIVE)
    return conn.execute(sa.select(operations.c.id).where(mine)).first() is not None


def active(conn: sa.Connection, uuids: Sequence[str]) -> set[str]:
    """Return those of the operations that have not ended."""
    mine = sa.and_(operations.c.uuid.in_(uuids), operations.c.status == ACTIVE)
    return set(conn.execute(sa.select(operations.c.uuid).where(mine)).scalars())


def overdue(conn: sa.Connection, hosts: Mapping[str, str], patience: float) -> set[str]:
    """Return those of the operations that have waited for their host for longer than so many seconds.

    A step may take long while its host is well: what counts is also for how long the host has been silent.

    :param hosts: operation -> the host whose compute service it waits for.
    """
    late = operations.c.updated_at < now(-patience)
    found = set(conn.execute(sa.select(operations.c.uuid).where(operations.c.uuid.in_(hosts), late)).scalars())
    heard = sa.and_(services.c.last_seen_at >= now(-patience), services.c.forced_down.is_(False))
    mine = sa.and_(services.c.binary == "nova-compute", services.c.host.in_(sorted(set(hosts.values()))))
    well = set(conn.execute(sa.select(services.c.host).where(mine, heard)).scalars())
    return {uuid for uuid in found if hosts[uuid] not in well}


def older(conn: sa.Connection, uuids: Sequence[str], seconds: float) -> set[str]:
    """Return those of the operations that were accepted longer ago than so many seconds."""
    old = operations.c.created_at < now(-seconds)
    return set(conn.execute(sa.select(operations.c.uuid).where(operations.c.uuid.in_(uuids), old)).scalars())


def finish(conn: sa.Connection, uuids: Sequence[str], status: str, message: str | None = None) -> list[str]:
    """End those of the operations that are still active; return their uuids."""
    ended = [row[0] for row in conn.execute(_STILL_ACTIVE, {"uuids": uuids})]
    if ended:
        conn.execute(_FINISH, {"uuids": ended, "new_status": status, "new_message": message})
    return ended


def cancel_others(conn: sa.Connection, instance_uuid: str, message: str) -> None:
    """End every active operation of an instance that is being deleted; called before the delete's own is added."""
    mine = sa.and_(operations.c.instance_uuid == instance_uuid, operations.c.status == ACTIVE)
    conn.execute(
        sa.update(operations)
        .where(mine)
        .values(status=CANCELLED, message=message, owner=None, finished_at=now(), updated_at=now())
    )


def get(conn: sa.Connection, operation_uuid: str) -> Operation | None:
    row = conn.execute(sa.select(*_COLUMNS).where(operations.c.uuid == operation_uuid)).one_or_none()
    return _operation(row) if row else None


def get_many(conn: sa.Connection, uuids: Sequence[str]) -> list[Operation]:
    return [_operation(row) for row in conn.execute(_BY_UUIDS, {"uuids": uuids})]


def database_time(conn: sa.Connection) -> datetime.datetime:
    """Return the database's time, for rows that are written many at once: a literal keeps them in one statement."""
    return conn.execute(_TIME).scalar_one()


def add_steps(
    conn: sa.Connection,
    operation_ids: Sequence[int],
    event: str,
    at: datetime.datetime,
    hosts: Sequence[str | None] | None = None,
    finished: bool = False,
) -> None:
    """Begin the same step of each operation, or note one that is finished already.

    :param at: the database's time (``database_time``).
    :param hosts: where each operation's step is done.
    """
    ending = {"finished_at": at, "result": "Success"} if finished else {}
    rows = [
        {"operation_id": i, "event": event, "host": host, "started_at": at, **ending}
        for i, host in zip(operation_ids, hosts or [None] * len(operation_ids), strict=True)
    ]
    conn.execute(_ADD_STEPS, rows)


def drop_open_steps(conn: sa.Connection, operation_ids: Sequence[int]) -> None:
    """Forget steps that were noted and never begun."""
    open_ = operation_steps.c.finished_at.is_(None)
    conn.execute(sa.delete(operation_steps).where(operation_steps.c.operation_id.in_(operation_ids), open_))


def finish_steps(
    conn: sa.Connection,
    operation_ids: Sequence[int],
    result: str = "Success",
    details: str | None = None,
    host: str | None = None,
) -> None:
    """End the open steps of the operations; result is Success or Error, as the API shows it."""
    statement = _FINISH_STEPS if host is None else _FINISH_STEPS.values(host=host)
    conn.execute(statement, {"ids": operation_ids, "new_result": result, "new_details": details})


def of_instance(
    conn: sa.Connection,
    instance_uuid: str,
    *,
    request_id: str | None = None,
    changes_since: datetime.datetime | None = None,
    changes_before: datetime.datetime | None = None,
    marker: str | None = None,
    limit: int | None = None,
) -> list[Operation]:
    """Return the instance's operations, the newest first. marker is a request id: what comes after it is returned.

    :raises LookupError: no operation of the instance has the marker's request id.
    """
    statement = sa.select(*_COLUMNS).where(operations.c.instance_uuid == instance_uuid)
    if request_id is not None:
        statement = statement.where(operations.c.request_id == request_id)
    if changes_since is not None:
        statement = statement.where(operations.c.updated_at >= changes_since)
    if changes_before is not None:
        statement = statement.where(operations.c.updated_at <= changes_before)
    if marker is not None:
        found = conn.execute(
            sa.select(operations.c.id).where(
                operations.c.instance_uuid == instance_uuid, operations.c.request_id == marker
            )
        ).first()
        if found is None:
            raise LookupError(marker)
        statement = statement.where(operations.c.id < found[0])
    if limit is not None:
        statement = statement.limit(limit)
    return [_operation(row) for row in conn.execute(statement.order_by(operations.c.id.desc()))]


def steps(conn: sa.Connection, operation_id: int) -> list[Step]:
    columns = [operation_steps.c[name] for name in Step.__dataclass_fields__]
    statement = sa.select(*columns).where(operation_steps.c.operation_id == operation_id)
    return [Step(*row) for row in conn.execute(statement.order_by(operation_steps.c.id))]

# SPDX-License-Identifier: Apache-2.0
"""Drains: emptying a host, a bounded number of servers at a time, whoever drives it.

A drain is a row. Its compute service is disabled with it, so that no grant brings anything new. Conductors take turns
under a lease; what each turn does follows from the rows alone: which servers are there, which of them move, which have
failed to, so a turn may be taken by anybody, and twice. That a server moves at most once at a time is for db/moves.py
to say.
"""

from __future__ import annotations

import datetime
import uuid as uuid_module
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db import instances, operations
from nova_lite.db.clock import now
from nova_lite.db.instances import Instance
from nova_lite.db.models import compute_nodes, drains, migrations, services
from nova_lite.db.models import instances as instances_table
from nova_lite.db.moves import COLUMNS as MIGRATION_COLUMNS
from nova_lite.db.moves import Migration
from nova_lite.db.registry import COMPUTE
from nova_lite.objects.move import ABORT

ACTIVE, COMPLETED, CANCELLED = "active", "completed", "cancelled"


class Drain(NamedTuple):
    """One row of drains, column by column."""

    id: int
    uuid: str
    host: str
    active_host: str | None
    status: str
    parallel: int
    was_disabled: bool
    servers: int
    owner: str | None
    lease_expires_at: datetime.datetime
    message: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime
    finished_at: datetime.datetime | None


_COLUMNS = tuple(drains.c[name] for name in Drain._fields)


@dataclass(frozen=True, slots=True)
class State:
    """What there is on a host that is drained: its servers, the moves away from it that are under way or wait to be
    confirmed, and those that have ended since the drain began, the newest last."""

    servers: list[Instance]
    moving: list[Migration]
    ended: list[Migration]

    @property
    def failed(self) -> list[Migration]:
        return [move for move in self.ended if move.status in ("error", "failed", "cancelled")]


def start(conn: sa.Connection, host: str, parallel: int) -> Drain:
    """Set out to empty a host: disable its compute service, and write down the drain.

    :raises NotFound: there is no compute service on the host.
    :raises Conflict: it is being drained already.
    """
    service = _lock_service(conn, host)
    if conn.execute(sa.select(drains.c.id).where(drains.c.active_host == host)).first():
        raise exception.Conflict(f"Host {host} is being drained already; see: nova-lite-manage drain list")
    here = sa.select(sa.func.count()).where(instances_table.c.host == host, instances_table.c.deleted == 0)
    drain_uuid = str(uuid_module.uuid4())
    conn.execute(
        sa.insert(drains).values(
            uuid=drain_uuid,
            host=host,
            active_host=host,
            parallel=parallel,
            was_disabled=service.disabled,
            servers=conn.execute(here).scalar_one(),
        )
    )
    if not service.disabled:
        _set_disabled(conn, service.id, True, "This host is being drained.")
    return get(conn, drain_uuid)


def cancel(conn: sa.Connection, host: str) -> Drain:
    """End a drain: what has not begun to move stays, what moves arrives; the service is as it was before.

    :raises NotFound: the host is not being drained.
    """
    service = _lock_service(conn, host)
    row = conn.execute(sa.select(*_COLUMNS).where(drains.c.active_host == host).with_for_update()).one_or_none()
    if row is None:
        raise exception.NotFound(f"Host {host} is not being drained.")
    _finish(conn, Drain._make(row), CANCELLED)
    if not row.was_disabled:
        _set_disabled(conn, service.id, False, None)
    early = sa.and_(
        migrations.c.source_compute == host,
        migrations.c.open.is_(True),
        migrations.c.type == "live-migration",
        migrations.c.status.in_(("accepted", "queued", "preparing")),
    )
    found = conn.execute(sa.select(migrations.c.id, migrations.c.operation_uuid).where(early)).all()
    mine = [row_id for row_id, operation in found if _drain_of(conn, operation) == row.uuid]
    if mine:
        conn.execute(sa.update(migrations).where(migrations.c.id.in_(mine)).values(wish=ABORT, updated_at=now()))
    return get(conn, row.uuid)


def complete(conn: sa.Connection, drain: Drain) -> None:
    """Note that a host is empty; its service stays disabled, for whatever it was emptied for."""
    _finish(conn, drain, COMPLETED)


def _finish(conn: sa.Connection, drain: Drain, status: str) -> None:
    values = {"status": status, "active_host": None, "owner": None, "finished_at": now(), "updated_at": now()}
    mine = sa.and_(drains.c.id == drain.id, drains.c.status == ACTIVE)
    conn.execute(sa.update(drains).where(mine).values(**values))


def _lock_service(conn: sa.Connection, host: str) -> Any:
    mine = sa.and_(services.c.binary == COMPUTE, services.c.host == host)
    statement = sa.select(services.c.id, services.c.disabled).where(mine).with_for_update()
    found = conn.execute(statement).one_or_none()
    if found is None:
        raise exception.NotFound(f"There is no compute service on host {host}.")
    return found


def _set_disabled(conn: sa.Connection, service_id: int, disabled: bool, reason: str | None) -> None:
    conn.execute(
        sa.update(services).where(services.c.id == service_id).values(disabled=disabled, disabled_reason=reason)
    )
    nodes = sa.update(compute_nodes).where(compute_nodes.c.service_id == service_id)
    conn.execute(nodes.values(updated_at=now(), revision=compute_nodes.c.revision + 1))


def get(conn: sa.Connection, uuid: str) -> Drain:
    return Drain._make(conn.execute(sa.select(*_COLUMNS).where(drains.c.uuid == uuid)).one())


def search(conn: sa.Connection) -> list[Drain]:
    """Return all drains there ever were, the oldest first."""
    return [Drain._make(row) for row in conn.execute(sa.select(*_COLUMNS).order_by(drains.c.id))]


# -- driving


def claim(conn: sa.Connection, owner: str, lease: float) -> list[Drain]:
    """Take the leases of active drains that nobody holds, and keep those that the owner has; return all of them."""
    mine = sa.or_(drains.c.owner == owner, drains.c.owner.is_(None), drains.c.lease_expires_at < now())
    free = sa.select(drains.c.id).where(drains.c.status == ACTIVE, mine).with_for_update(skip_locked=True)
    ids = list(conn.execute(free).scalars())
    if not ids:
        return []
    conn.execute(sa.update(drains).where(drains.c.id.in_(ids)).values(owner=owner, lease_expires_at=now(lease)))
    rows = conn.execute(sa.select(*_COLUMNS).where(drains.c.id.in_(ids)).order_by(drains.c.id))
    return [Drain._make(row) for row in rows]


def state(conn: sa.Connection, drain: Drain) -> State:
    """Read what is on the host, and how moves away from it stand."""
    here = sa.and_(instances_table.c.host == drain.host, instances_table.c.deleted == 0)
    rows = conn.execute(sa.select(*instances.COLUMNS).where(here).order_by(instances_table.c.id))
    away = sa.select(*MIGRATION_COLUMNS).where(migrations.c.source_compute == drain.host).order_by(migrations.c.id)
    moving = conn.execute(away.where(migrations.c.open.is_(True), migrations.c.status != "done"))
    ended = conn.execute(away.where(migrations.c.open.is_(False), migrations.c.created_at >= drain.created_at))
    return State(
        [Instance._make(row) for row in rows],
        [Migration._make(row) for row in moving],
        [Migration._make(row) for row in ended],
    )


def check_turn(conn: sa.Connection, drain: Drain, owner: str) -> None:
    """Lock a drain in the transaction that begins a move for it: whoever lost its lease does not begin another one.

    :raises Conflict: it has ended, somebody else drives it, or as many servers move as may.
    """
    mine = sa.and_(drains.c.id == drain.id, drains.c.status == ACTIVE, drains.c.owner == owner)
    if conn.execute(sa.select(drains.c.id).where(mine).with_for_update()).first() is None:
        raise exception.Conflict(f"Host {drain.host} is not drained from here any more.")
    under_way = sa.and_(
        migrations.c.source_compute == drain.host,
        migrations.c.open.is_(True),
        migrations.c.status.not_in(("finished", "done")),
    )
    if conn.execute(sa.select(sa.func.count()).where(under_way)).scalar_one() >= drain.parallel:
        raise exception.Conflict(f"{drain.parallel} servers move away from {drain.host} already.")


def began(conn: sa.Connection, drain: Drain, moving: Sequence[Migration]) -> list[Migration]:
    """Return those of the moves that the drain has begun."""
    return [move for move in moving if _drain_of(conn, move.operation_uuid) == drain.uuid]


def _drain_of(conn: sa.Connection, operation_uuid: str) -> str | None:
    operation = operations.get(conn, operation_uuid)
    return operation.arguments.get("drain") if operation else None


def note(conn: sa.Connection, drain: Drain, message: str | None) -> None:
    """Write down what a drain waits for."""
    if drain.message != message:
        conn.execute(sa.update(drains).where(drains.c.id == drain.id).values(message=message, updated_at=now()))

# SPDX-License-Identifier: Apache-2.0
"""Services as operators see and steer them. Whether one is up is judged by the database's clock."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db import addresses, zones
from nova_lite.db.clock import now
from nova_lite.db.models import aggregate_hosts, allocations, compute_nodes, grants, instances, migrations, services
from nova_lite.db.moves import EVACUATION
from nova_lite.db.registry import COMPUTE

INTERNAL_ZONE = "internal"


@dataclass(frozen=True, slots=True)
class Service:
    """zone is None for a compute host that no aggregate puts into one."""

    id: int
    uuid: str
    binary: str
    host: str
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    last_seen_at: datetime.datetime
    up: bool
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What to change of a service; None leaves it as it is. A reason is given with disabled alone."""

    disabled: bool | None = None
    disabled_reason: str | None = None
    forced_down: bool | None = None


def is_up(down_time: float) -> sa.ColumnElement[bool]:
    """True of a service that was seen within so many seconds, and that nobody declared down."""
    return sa.and_(services.c.forced_down.is_(False), services.c.last_seen_at > now(-down_time))


def _select(down_time: float) -> sa.Select[Any]:
    columns = [services.c[name] for name in Service.__dataclass_fields__ if name in services.c]
    return sa.select(*columns, sa.case((is_up(down_time), 1), else_=0).label("up"))


def _service(row: Any, zone_of: dict[str, str]) -> Service:
    values = dict(row._mapping)
    zone = zone_of.get(row.host) if row.binary == COMPUTE else INTERNAL_ZONE
    return Service(**{**values, "up": bool(row.up), "zone": zone})


def search(conn: sa.Connection, down_time: float, host: str | None = None, binary: str | None = None) -> list[Service]:
    """List services, the oldest first."""
    statement = _select(down_time)
    if host is not None:
        statement = statement.where(services.c.host == host)
    if binary is not None:
        statement = statement.where(services.c.binary == binary)
    rows = conn.execute(statement.order_by(services.c.id)).all()
    zone_of = zones.by_host(conn, None if host is None else [host])
    return [_service(row, zone_of) for row in rows]


def get(conn: sa.Connection, down_time: float, which: int | str) -> Service:
    """Return a service by its id or, if which is text, by its uuid.

    :raises ServiceNotFound: there is none.
    """
    row = conn.execute(_select(down_time).where(_is(which))).first()
    if row is None:
        raise exception.ServiceNotFound(service=which)
    return _service(row, zones.by_host(conn, [row.host]))


def named(conn: sa.Connection, down_time: float, host: str, binary: str) -> Service:
    """:raises NotFound: there is no such service."""
    found = search(conn, down_time, host, binary)
    if not found:
        raise exception.NotFound(f"Could not find binary {binary} on host {host}.")
    return found[0]


def _is(which: int | str) -> sa.ColumnElement[bool]:
    return services.c.id == which if isinstance(which, int) else services.c.uuid == which


def update(conn: sa.Connection, service_id: int, change: Change) -> None:
    """Change a service, and touch its nodes so that schedulers notice. Who is enabled starts with a clean record.

    :raises ServiceNotFound: it is gone.
    :raises Conflict: its host is to count as alive again, and has still to be rid of servers that were evacuated.
    """
    values: dict[str, Any] = {}
    if change.disabled is not None:
        values = {"disabled": change.disabled, "disabled_reason": change.disabled_reason if change.disabled else None}
    if change.forced_down is not None:
        values["forced_down"] = change.forced_down
    columns = (services.c.host, services.c.binary, services.c.forced_down)
    row = conn.execute(sa.select(*columns).where(services.c.id == service_id).with_for_update()).first()
    if row is None:
        raise exception.ServiceNotFound(service=service_id)
    if row.binary == COMPUTE and row.forced_down and change.forced_down is False:
        _check_cleaned_up(conn, row.host)
    conn.execute(sa.update(services).where(services.c.id == service_id).values(**values))
    clean = {"failed_builds": 0} if change.disabled is False else {}
    nodes = sa.update(compute_nodes).where(compute_nodes.c.service_id == service_id)
    conn.execute(nodes.values(updated_at=now(), revision=compute_nodes.c.revision + 1, **clean))


def _check_cleaned_up(conn: sa.Connection, host: str) -> None:
    """Make sure that no server runs on the host that lives elsewhere by now, or is about to."""
    away = sa.and_(
        migrations.c.source_compute == host,
        migrations.c.type == EVACUATION,
        migrations.c.open.is_(True),
    )
    statuses = list(conn.execute(sa.select(migrations.c.status).where(away)).scalars())
    if "done" in statuses:
        raise exception.Conflict(
            f"Servers that were evacuated from host {host} are not cleaned up there. Start its compute service, which "
            "does that while it is still forced down, and try again."
        )
    if statuses:
        raise exception.Conflict(f"Servers are being evacuated from host {host}. Wait until that has ended.")


def lock_fenced(conn: sa.Connection, down_time: float, host: str) -> None:
    """Make sure that a host is certain to be dead, and stays so until the transaction ends: somebody has said it is.

    A service that is merely not heard proves nothing, since the servers of a host that is cut off go on running.

    :raises NotFound: there is no such compute host.
    :raises BadRequest: its service is in use.
    :raises Conflict: its service is not heard, and not forced down.
    """
    columns = (services.c.forced_down, sa.case((is_up(down_time), 1), else_=0).label("up"))
    mine = sa.and_(services.c.binary == COMPUTE, services.c.host == host)
    row = conn.execute(sa.select(*columns).where(mine).with_for_update()).one_or_none()
    if row is None:
        raise exception.NotFound(f"Compute host {host} could not be found.")
    if row.up:
        raise exception.BadRequest(f"Compute service of {host} is still in use.")
    if not row.forced_down:
        raise exception.Conflict(
            f"The compute service of {host} does not answer, but its servers may still be running. Make sure that the "
            "host is off, and force its service down: then its servers can be evacuated."
        )


def delete(conn: sa.Connection, service_id: int) -> None:
    """Remove a service with its nodes and its places in aggregates.

    The nodes are locked first, as by whoever grants: nothing can come onto them meanwhile.

    :raises Conflict: servers are on it, or on their way from there or to there.
    :raises ServiceNotFound: it is gone.
    """
    row = conn.execute(sa.select(services.c.host, services.c.binary).where(services.c.id == service_id)).first()
    if row is None:
        raise exception.ServiceNotFound(service=service_id)
    locked = sa.select(compute_nodes.c.id).where(compute_nodes.c.service_id == service_id)
    nodes = list(conn.execute(locked.order_by(compute_nodes.c.id).with_for_update()).scalars())
    if row.binary == COMPUTE:
        _complete_evacuations(conn, row.host, nodes)
        _check_empty(conn, row.host, nodes)
        conn.execute(sa.delete(aggregate_hosts).where(aggregate_hosts.c.host == row.host))
        addresses.forget_host(conn, row.host)
    if nodes:
        conn.execute(sa.delete(grants).where(grants.c.node_id.in_(nodes)))
        conn.execute(sa.delete(compute_nodes).where(compute_nodes.c.id.in_(nodes)))
    conn.execute(sa.delete(services).where(services.c.id == service_id))


def _complete_evacuations(conn: sa.Connection, host: str, nodes: list[int]) -> None:
    """End the evacuations away from a host that does not come back; what they left there goes with its nodes.

    Otherwise a dead host, which cannot clean up, could never be deleted (Launchpad 1829479).
    """
    left = sa.and_(
        migrations.c.source_compute == host,
        migrations.c.type == EVACUATION,
        migrations.c.status == "done",
        migrations.c.open.is_(True),
    )
    uuids = list(conn.execute(sa.select(migrations.c.uuid).where(left)).scalars())
    if not uuids:
        return
    halves = sa.and_(allocations.c.migration.in_(uuids), allocations.c.node_id.in_(nodes))
    conn.execute(sa.delete(allocations).where(halves))
    ended = sa.update(migrations).where(migrations.c.uuid.in_(uuids))
    conn.execute(ended.values(status="completed", open=False, updated_at=now()))


def _check_empty(conn: sa.Connection, host: str, nodes: list[int]) -> None:
    here = sa.select(sa.func.count()).where(instances.c.host == host, instances.c.deleted == 0)
    if conn.execute(here).scalar_one():
        raise exception.Conflict(
            "Unable to delete compute service that is hosting instances. Migrate or delete the instances first."
        )
    moving = sa.select(migrations.c.id).where(
        sa.or_(migrations.c.source_compute == host, migrations.c.dest_compute == host),
        migrations.c.open.is_(True),
        # All that is left of these is to be done on their source.
        sa.not_(sa.and_(migrations.c.type == EVACUATION, migrations.c.status == "done")),
    )
    if conn.execute(moving).first():
        raise exception.Conflict(
            "Unable to delete compute service that has in-progress migrations. Complete the migrations or delete the "
            "instances first."
        )
    booked = sa.select(sa.func.count()).where(allocations.c.node_id.in_(nodes))
    granted = sa.select(sa.func.count()).where(grants.c.node_id.in_(nodes), grants.c.expires_at > now())
    if conn.execute(booked).scalar_one() or conn.execute(granted).scalar_one():
        raise exception.Conflict(
            "Unable to delete compute service that has in-progress builds or migrations. Complete them first."
        )

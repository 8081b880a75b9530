# SPDX-License-Identifier: Apache-2.0
"""Lists of moves: the filters that the API offers, page by page, the newest first.

A page costs a fixed number of statements, whatever its size, and a later one no more than the first.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db import instances
from nova_lite.db.models import flavors, migrations
from nova_lite.db.moves import COLUMNS, LIVE, Migration

#: The statuses of a live migration that is under way; only then it is shown as its server's.
IN_PROGRESS = ("queued", "preparing", "running", "post-migrating")


@dataclass(frozen=True, slots=True)
class Filters:
    """What the moves of a list have in common. equal: column -> value. host is the source's or the destination's."""

    equal: Mapping[str, str] = field(default_factory=dict)
    host: str | None = None
    changes_since: datetime.datetime | None = None
    changes_before: datetime.datetime | None = None


def page(conn: sa.Connection, filters: Filters, limit: int, marker: str | None = None) -> list[Migration]:
    """Return a page of moves, the newest first. marker is a move's uuid: what comes after it is returned.

    :raises BadRequest: no move has the marker's uuid.
    """
    statement = sa.select(*COLUMNS).where(*_conditions(filters))
    if marker is not None:
        statement = statement.where(_after(conn, marker))
    statement = statement.order_by(migrations.c.created_at.desc(), migrations.c.id.desc()).limit(limit)
    return [Migration._make(row) for row in conn.execute(statement)]


def every(conn: sa.Connection, filters: Filters) -> list[Migration]:
    """Return all moves, the oldest first: the list as it was before it had pages."""
    statement = sa.select(*COLUMNS).where(*_conditions(filters)).order_by(migrations.c.id)
    return [Migration._make(row) for row in conn.execute(statement)]


def _conditions(filters: Filters) -> list[sa.ColumnElement[bool]]:
    found = [migrations.c[column] == value for column, value in filters.equal.items()]
    if filters.host is not None:
        found.append(sa.or_(migrations.c.source_compute == filters.host, migrations.c.dest_compute == filters.host))
    if filters.changes_since is not None:
        found.append(migrations.c.updated_at >= filters.changes_since)
    if filters.changes_before is not None:
        found.append(migrations.c.updated_at <= filters.changes_before)
    return found


def _after(conn: sa.Connection, marker: str) -> sa.ColumnElement[bool]:
    columns = (migrations.c.created_at, migrations.c.id)
    row = conn.execute(sa.select(*columns).where(migrations.c.uuid == marker)).one_or_none()
    if row is None:
        raise exception.BadRequest(f"Marker {marker} could not be found.")
    same_time = sa.and_(migrations.c.created_at == row.created_at, migrations.c.id < row.id)
    return sa.or_(migrations.c.created_at < row.created_at, same_time)


def live_of(conn: sa.Connection, instance_uuid: str) -> list[Migration]:
    """Return the server's live migration that is under way, if there is one."""
    mine = sa.and_(migrations.c.instance_uuid == instance_uuid, migrations.c.type == LIVE)
    statement = sa.select(*COLUMNS).where(mine, migrations.c.status.in_(IN_PROGRESS)).order_by(migrations.c.id)
    return [Migration._make(row) for row in conn.execute(statement)]


def get(conn: sa.Connection, instance_uuid: str, migration_id: int) -> Migration:
    """Return a move of the server.

    :raises MigrationNotFound: the server has no such move.
    """
    mine = sa.and_(migrations.c.instance_uuid == instance_uuid, migrations.c.id == migration_id)
    row = conn.execute(sa.select(*COLUMNS).where(mine)).one_or_none()
    if row is None:
        raise exception.MigrationNotFound(migration=migration_id)
    return Migration._make(row)


def flavor_ids(conn: sa.Connection, shown: Iterable[Migration]) -> dict[str, tuple[int | None, int | None]]:
    """Return, by the moves' uuids, the ids of the rows of their old and new flavors; None for those that are gone."""
    pinned = {
        move.uuid: (instances.flavor_from(move.old_flavor).flavorid, instances.flavor_from(move.new_flavor).flavorid)
        for move in shown
    }
    wanted = sorted({flavorid for pair in pinned.values() for flavorid in pair})
    if not wanted:
        return {}
    statement = sa.select(flavors.c.flavorid, flavors.c.id).where(flavors.c.flavorid.in_(wanted))
    known = {row.flavorid: row.id for row in conn.execute(statement)}
    return {uuid: (known.get(old), known.get(new)) for uuid, (old, new) in pinned.items()}

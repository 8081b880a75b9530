# SPDX-License-Identifier: Apache-2.0
"""Flavors, their extra specs, and which projects may use the private ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exception

from nova_lite import exception
from nova_lite.db.models import flavor_projects, flavors
from nova_lite.objects.flavor import Flavor

_COLUMNS = tuple(flavors.c[name] for name in Flavor.__dataclass_fields__)

#: What lists can be sorted by: the API's names, and the columns.
SORT_KEYS: dict[str, sa.ColumnElement[Any]] = {
    "created_at": flavors.c.created_at,
    "description": sa.func.coalesce(flavors.c.description, ""),
    "disabled": flavors.c.disabled,
    "ephemeral_gb": flavors.c.ephemeral_gb,
    "flavorid": flavors.c.flavorid,
    "id": flavors.c.id,
    "is_public": flavors.c.is_public,
    "memory_mb": flavors.c.memory_mb,
    "name": flavors.c.name,
    "root_gb": flavors.c.root_gb,
    "rxtx_factor": flavors.c.rxtx_factor,
    "swap": flavors.c.swap_mb,
    "updated_at": flavors.c.updated_at,
    "vcpus": flavors.c.vcpus,
}


@dataclass(frozen=True, slots=True)
class Search:
    """Which flavors to list. is_public True adds the private ones that project_id may use; None is every flavor."""

    project_id: str | None = None
    is_public: bool | None = True
    disabled: bool | None = None
    name: str | None = None
    min_ram: int = 0
    min_disk: int = 0
    sort_key: str = "flavorid"
    descending: bool = False
    marker: str | None = None
    limit: int = 1000


def _flavor(row: sa.Row[Any]) -> Flavor:
    values = dict(row._mapping)
    values["extra_specs"] = json.loads(values["extra_specs"])
    return Flavor(**values)


def _usable_by(project_id: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """True of the flavors that a project may use."""
    granted = sa.select(flavor_projects.c.flavor_id).where(flavor_projects.c.project_id == project_id)
    return sa.or_(flavors.c.is_public.is_(True), flavors.c.id.in_(granted))


# Built once: every create reads a flavor.
_BY_ID = sa.select(*_COLUMNS).where(flavors.c.flavorid == sa.bindparam("flavorid"))
_BY_ID_IF_USABLE = _BY_ID.where(_usable_by(sa.bindparam("project")))


def get(conn: sa.Connection, flavorid: str, project_id: str | None = None) -> Flavor:
    """Return a flavor by its id.

    :param project_id: whose flavor it has to be, None for anybody's.
    :raises FlavorNotFound: there is none, or the project may not use it.
    """
    statement = _BY_ID if project_id is None else _BY_ID_IF_USABLE
    row = conn.execute(statement, {"flavorid": flavorid, "project": project_id}).first()
    if row is None:
        raise exception.FlavorNotFound(flavor=flavorid)
    return _flavor(row)


def search(conn: sa.Connection, wanted: Search) -> list[Flavor]:
    """List flavors.

    :raises BadRequest: the marker is no id of a flavor that could be listed.
    """
    statement = sa.select(*_COLUMNS).where(_public(wanted))
    if wanted.disabled is not None:
        statement = statement.where(flavors.c.disabled.is_(wanted.disabled))
    if wanted.name is not None:
        statement = statement.where(flavors.c.name == wanted.name)
    if wanted.min_ram:
        statement = statement.where(flavors.c.memory_mb >= wanted.min_ram)
    if wanted.min_disk:
        statement = statement.where(flavors.c.root_gb >= wanted.min_disk)
    if wanted.marker is not None:
        statement = statement.where(_after(conn, wanted))
    key = SORT_KEYS[wanted.sort_key]
    order = (key.desc(), flavors.c.id.desc()) if wanted.descending else (key.asc(), flavors.c.id.asc())
    return [_flavor(row) for row in conn.execute(statement.order_by(*order).limit(wanted.limit))]


def _public(wanted: Search) -> sa.ColumnElement[bool]:
    if wanted.is_public is None:
        return sa.true()
    if wanted.is_public and wanted.project_id is not None:
        return _usable_by(sa.literal(wanted.project_id))
    return flavors.c.is_public.is_(wanted.is_public)


def _after(conn: sa.Connection, wanted: Search) -> sa.ColumnElement[bool]:
    """True of the rows that come after the marker's in the order."""
    key = SORT_KEYS[wanted.sort_key]
    marker = sa.select(key, flavors.c.id).where(flavors.c.flavorid == wanted.marker, _public(wanted))
    row = conn.execute(marker).first()
    if row is None:
        raise exception.BadRequest(f"marker [{wanted.marker}] not found")
    value, identifier = row
    if wanted.descending:
        return sa.or_(key < value, sa.and_(key == value, flavors.c.id < identifier))
    return sa.or_(key > value, sa.and_(key == value, flavors.c.id > identifier))


def create(conn: sa.Connection, flavor: Flavor) -> None:
    """Write a new flavor; if it is private, nobody may use it yet.

    :raises Conflict: its name or its id is taken.
    """
    taken = sa.or_(flavors.c.flavorid == flavor.flavorid, flavors.c.name == flavor.name)
    if conn.execute(sa.select(flavors.c.id).where(taken)).first():
        raise _taken(flavor)
    values = {name: getattr(flavor, name) for name in Flavor.__dataclass_fields__}
    values["extra_specs"] = json.dumps(flavor.extra_specs)
    try:
        conn.execute(sa.insert(flavors).values(**values))
    except db_exception.DBDuplicateEntry:
        raise _taken(flavor)


def _taken(flavor: Flavor) -> exception.Conflict:
    return exception.Conflict(f"Flavor with name {flavor.name} or ID {flavor.flavorid} already exists.")


def _lock(conn: sa.Connection, flavorid: str) -> Any:
    statement = sa.select(flavors.c.id, flavors.c.is_public, flavors.c.extra_specs)
    row = conn.execute(statement.where(flavors.c.flavorid == flavorid).with_for_update()).first()
    if row is None:
        raise exception.FlavorNotFound(flavor=flavorid)
    return row


def set_description(conn: sa.Connection, flavorid: str, description: str | None) -> None:
    """:raises FlavorNotFound: there is no such flavor."""
    row = _lock(conn, flavorid)
    conn.execute(sa.update(flavors).where(flavors.c.id == row.id).values(description=description))


def delete(conn: sa.Connection, flavorid: str) -> None:
    """Remove a flavor; servers keep theirs, as they were pinned.

    :raises FlavorNotFound: there is no such flavor.
    """
    row = _lock(conn, flavorid)
    conn.execute(sa.delete(flavor_projects).where(flavor_projects.c.flavor_id == row.id))
    conn.execute(sa.delete(flavors).where(flavors.c.id == row.id))


def set_extra_specs(conn: sa.Connection, flavorid: str, specs: Mapping[str, str]) -> None:
    """Add or change extra specs.

    :raises FlavorNotFound: there is no such flavor.
    """
    row = _lock(conn, flavorid)
    merged = {**json.loads(row.extra_specs), **specs}
    conn.execute(sa.update(flavors).where(flavors.c.id == row.id).values(extra_specs=json.dumps(merged)))


def delete_extra_spec(conn: sa.Connection, flavorid: str, key: str) -> None:
    """:raises NotFound: there is no such flavor, or it has no such extra spec."""
    row = _lock(conn, flavorid)
    specs = json.loads(row.extra_specs)
    if key not in specs:
        raise exception.NotFound(f"Flavor {flavorid} has no extra specs with key {key}.")
    del specs[key]
    conn.execute(sa.update(flavors).where(flavors.c.id == row.id).values(extra_specs=json.dumps(specs)))


def projects(conn: sa.Connection, flavorid: str) -> list[str]:
    """Return the projects that may use a private flavor.

    :raises FlavorNotFound: there is no such flavor.
    """
    found = conn.execute(sa.select(flavors.c.id).where(flavors.c.flavorid == flavorid)).scalar_one_or_none()
    if found is None:
        raise exception.FlavorNotFound(flavor=flavorid)
    statement = sa.select(flavor_projects.c.project_id).where(flavor_projects.c.flavor_id == found)
    return list(conn.execute(statement.order_by(flavor_projects.c.project_id)).scalars())


def add_project(conn: sa.Connection, flavorid: str, project_id: str, allow_public: bool) -> None:
    """Let a project use a flavor.

    :param allow_public: whether it is no error that everybody may use it anyway.
    :raises Conflict: the project may use it already, or everybody may.
    """
    row = _lock(conn, flavorid)
    if row.is_public and not allow_public:
        raise exception.Conflict(f"Can not add access to a public flavor: {flavorid}.")
    try:
        with conn.begin_nested():
            conn.execute(sa.insert(flavor_projects).values(flavor_id=row.id, project_id=project_id))
    except db_exception.DBDuplicateEntry:
        raise exception.Conflict(f"Flavor access already exists for flavor {flavorid} and project {project_id}.")


def remove_project(conn: sa.Connection, flavorid: str, project_id: str) -> None:
    """:raises NotFound: there is no such flavor, or the project had no access to it."""
    row = _lock(conn, flavorid)
    mine = sa.and_(flavor_projects.c.flavor_id == row.id, flavor_projects.c.project_id == project_id)
    if not conn.execute(sa.delete(flavor_projects).where(mine)).rowcount:
        raise exception.NotFound(f"Flavor access not found for {flavorid} / {project_id} combination.")

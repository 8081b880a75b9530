# SPDX-License-Identifier: Apache-2.0
"""What the embedded image service knows of its images; their content is in files."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db.clock import now
from nova_lite.db.models import images, operations

QUEUED, SAVING, ACTIVE, KILLED = "queued", "saving", "active", "killed"
PUBLIC, PRIVATE, SHARED, COMMUNITY = "public", "private", "shared", "community"

SORT_KEYS = ("name", "status", "container_format", "disk_format", "size", "id", "created_at", "updated_at")


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image's row. sizes are in bytes, min_disk in GiB, min_ram in MiB; hash_value is SHA-512, checksum MD5."""

    uuid: str
    name: str | None
    owner: str
    status: str
    visibility: str
    disk_format: str | None
    container_format: str | None
    size: int | None
    virtual_size: int | None
    checksum: str | None
    hash_value: str | None
    min_disk: int
    min_ram: int
    protected: bool
    hidden: bool
    tags: tuple[str, ...]
    properties: dict[str, str]
    created_at: datetime.datetime
    updated_at: datetime.datetime


@dataclass(frozen=True, slots=True)
class Search:
    """Which images to list. project_id is whose images are seen beside the public ones, None for everybody's.

    equal holds the values that a column may have; tags and properties are those that an image must have.
    """

    project_id: str | None = None
    ids: tuple[str, ...] | None = None
    equal: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    properties: dict[str, str] = field(default_factory=dict)
    hidden: bool = False
    changed_since: datetime.datetime | None = None
    sort_key: str = "created_at"
    descending: bool = True
    marker: str | None = None
    limit: int = 25


_COLUMNS = tuple(images.c[name] for name in StoredImage.__dataclass_fields__)


def _image(row: sa.Row[Any]) -> StoredImage:
    values = dict(row._mapping)
    values["tags"] = tuple(json.loads(values["tags"]))
    values["properties"] = json.loads(values["properties"])
    return StoredImage(**values)


def _visible_to(project_id: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    return sa.or_(images.c.owner == project_id, images.c.visibility == PUBLIC, images.c.visibility == COMMUNITY)


# Built once: every create reads an image.
_BY_ID = sa.select(*_COLUMNS).where(images.c.uuid == sa.bindparam("image"))
_BY_ID_IF_VISIBLE = _BY_ID.where(_visible_to(sa.bindparam("project")))


def get(conn: sa.Connection, image_id: str, project_id: str | None = None) -> StoredImage:
    """Return an image.

    :param project_id: who must be able to see it, None for anybody.
    :raises ImageNotFound: there is none, or the project cannot see it.
    """
    statement = _BY_ID if project_id is None else _BY_ID_IF_VISIBLE
    row = conn.execute(statement, {"image": image_id, "project": project_id}).first()
    if row is None:
        raise exception.ImageNotFound(image=image_id)
    return _image(row)


def search(conn: sa.Connection, wanted: Search) -> list[StoredImage]:
    """List images.

    :raises BadRequest: the marker is no id of an image that the project can see.
    """
    statement = sa.select(*_COLUMNS).where(images.c.hidden.is_(wanted.hidden))
    if wanted.project_id is not None:
        statement = statement.where(_visible_to(sa.literal(wanted.project_id)))
    if wanted.ids is not None:
        statement = statement.where(images.c.uuid.in_(wanted.ids))
    if wanted.changed_since is not None:
        statement = statement.where(images.c.updated_at >= wanted.changed_since)
    for name, values in wanted.equal.items():
        statement = statement.where(images.c[name].in_(values))
    key = _sort_key(wanted.sort_key)
    if wanted.marker is not None:
        statement = statement.where(_after(conn, key, wanted))
    order = (key.desc(), images.c.id.desc()) if wanted.descending else (key.asc(), images.c.id.asc())
    rows = conn.execute(statement.order_by(*order))
    # Tags and properties are documents to the database; images are few enough to look into each.
    found = (image for image in map(_image, rows) if _has(image, wanted))
    return list(itertools.islice(found, wanted.limit))


def _has(image: StoredImage, wanted: Search) -> bool:
    return wanted.tags <= set(image.tags) and wanted.properties.items() <= image.properties.items()


def _sort_key(name: str) -> sa.ColumnElement[Any]:
    """Return what to sort by; what is not known sorts as nothing, so that it can be compared with a marker's."""
    if name == "id":
        return images.c.uuid
    column = images.c[name]
    return sa.func.coalesce(column, 0 if name == "size" else "") if column.nullable else column


def _after(conn: sa.Connection, key: sa.ColumnElement[Any], wanted: Search) -> sa.ColumnElement[bool]:
    marker = sa.select(key, images.c.id).where(images.c.uuid == wanted.marker)
    if wanted.project_id is not None:
        marker = marker.where(_visible_to(sa.literal(wanted.project_id)))
    row = conn.execute(marker).first()
    if row is None:
        raise exception.BadRequest(f"Image {wanted.marker} could not be found: it cannot be a marker.")
    value, identifier = row
    if wanted.descending:
        return sa.or_(key < value, sa.and_(key == value, images.c.id < identifier))
    return sa.or_(key > value, sa.and_(key == value, images.c.id > identifier))


def create(conn: sa.Connection, image_id: str, owner: str, values: dict[str, Any]) -> StoredImage:
    """Write an image that waits for its content.

    :raises Conflict: the id is taken.
    """
    if conn.execute(sa.select(images.c.id).where(images.c.uuid == image_id)).first():
        raise exception.Conflict(f"Image ID {image_id} already exists!")
    conn.execute(
        sa.insert(images).values(
            **{
                "visibility": SHARED,
                "tags": "[]",
                "properties": "{}",
                **_columns(values),
                "uuid": image_id,
                "owner": owner,
                "status": QUEUED,
            }
        )
    )
    return get(conn, image_id)


def _columns(values: dict[str, Any]) -> dict[str, Any]:
    columns = dict(values)
    if "tags" in columns:
        columns["tags"] = json.dumps(sorted(set(columns["tags"])))
    if "properties" in columns:
        columns["properties"] = json.dumps(columns["properties"])
    return columns


def lock(conn: sa.Connection, image_id: str) -> StoredImage:
    """Lock an image's row and return it.

    :raises ImageNotFound: there is none.
    """
    row = conn.execute(sa.select(*_COLUMNS).where(images.c.uuid == image_id).with_for_update()).first()
    if row is None:
        raise exception.ImageNotFound(image=image_id)
    return _image(row)


def update(conn: sa.Connection, image_id: str, values: dict[str, Any]) -> StoredImage:
    """Change an image's columns and return it as it is then.

    :raises ImageNotFound: there is none.
    """
    conn.execute(sa.update(images).where(images.c.uuid == image_id).values(**_columns(values), updated_at=now()))
    return get(conn, image_id)


def advance(conn: sa.Connection, image_id: str, before: Sequence[str], after: str, **values: Any) -> bool:
    """Change an image's status if it is one of those before; tell whether it was.

    A compare-and-set: of two uploads to one image, one goes on.
    """
    mine = sa.and_(images.c.uuid == image_id, images.c.status.in_(before))
    changed = conn.execute(sa.update(images).where(mine).values(status=after, updated_at=now(), **_columns(values)))
    return changed.rowcount == 1


def exists(conn: sa.Connection, image_id: str, status: str | None = None) -> bool:
    """Tell whether there is an image of that id, in that status if one is given."""
    mine = images.c.uuid == image_id
    if status is not None:
        mine = sa.and_(mine, images.c.status == status)
    return conn.execute(sa.select(images.c.id).where(mine)).first() is not None


def delete_unfinished(conn: sa.Connection, *image_ids: str) -> None:
    """Delete those of the images that have no content yet."""
    unfinished = images.c.status.in_((QUEUED, SAVING))
    conn.execute(sa.delete(images).where(images.c.uuid.in_(image_ids), unfinished))


def delete_of_cancelled(conn: sa.Connection, instance_uuid: str) -> None:
    """Delete the images that active operations of an instance were to fill: called before those are cancelled."""
    active = sa.and_(operations.c.instance_uuid == instance_uuid, operations.c.status == "active")
    arguments = map(json.loads, conn.execute(sa.select(operations.c.arguments).where(active)).scalars())
    image_ids = [str(each["image_id"]) for each in arguments if "image_id" in each]
    if image_ids:
        delete_unfinished(conn, *image_ids)


def delete(conn: sa.Connection, image_id: str) -> None:
    conn.execute(sa.delete(images).where(images.c.uuid == image_id))

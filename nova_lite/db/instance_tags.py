# SPDX-License-Identifier: Apache-2.0
"""The tags of instances. Whoever changes them holds the instance's row lock, so that their number stays in bounds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db import instances as instances_db
from nova_lite.db.models import instance_tags

MAX_TAGS = 50


def of(conn: sa.Connection, uuids: Sequence[str]) -> dict[str, list[str]]:
    """Return uuid -> sorted tags, in one statement; instances without tags are not in it."""
    if not uuids:
        return {}
    columns = (instance_tags.c.instance_uuid, instance_tags.c.tag)
    statement = sa.select(*columns).where(instance_tags.c.instance_uuid.in_(uuids)).order_by(instance_tags.c.tag)
    found: dict[str, list[str]] = {}
    for uuid, tag in conn.execute(statement):
        found.setdefault(uuid, []).append(tag)
    return found


def replace(conn: sa.Connection, uuid: str, tags: Collection[str]) -> list[str]:
    """Put these tags in the place of all that the instance has; return them sorted."""
    _lock(conn, uuid, "update tags")
    conn.execute(sa.delete(instance_tags).where(instance_tags.c.instance_uuid == uuid))
    rows = [{"instance_uuid": uuid, "tag": tag} for tag in sorted(set(tags))]
    if rows:
        conn.execute(sa.insert(instance_tags), rows)
    return [row["tag"] for row in rows]


def add(conn: sa.Connection, uuid: str, tag: str) -> bool:
    """Give the instance a tag; return whether it is new.

    :raises BadRequest: the instance has as many tags as it may have.
    """
    _lock(conn, uuid, "update tag")
    tags = of(conn, [uuid]).get(uuid, [])
    if tag in tags:
        return False
    if len(tags) >= MAX_TAGS:
        raise exception.BadRequest(
            f"The number of tags exceeded the per-server limit {MAX_TAGS}; remove some from server {uuid} first."
        )
    conn.execute(sa.insert(instance_tags).values(instance_uuid=uuid, tag=tag))
    return True


def remove(conn: sa.Connection, uuid: str, tag: str) -> None:
    """Take one tag away.

    :raises NotFound: the instance has no such tag.
    """
    _lock(conn, uuid, "delete tag")
    mine = sa.and_(instance_tags.c.instance_uuid == uuid, instance_tags.c.tag == tag)
    if not conn.execute(sa.delete(instance_tags).where(mine)).rowcount:
        raise exception.NotFound(f"Server {uuid} has no tag '{tag}'.")


def remove_all(conn: sa.Connection, uuid: str) -> None:
    """Take all tags away."""
    _lock(conn, uuid, "delete tags")
    conn.execute(sa.delete(instance_tags).where(instance_tags.c.instance_uuid == uuid))


def _lock(conn: sa.Connection, uuid: str, action: str) -> None:
    instances_db.check_state(instances_db.lock(conn, uuid), action, instances_db.AT_REST, None)

# SPDX-License-Identifier: Apache-2.0
"""Server groups. Who is in one is what the instances say that are not deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from oslo_config import cfg

from nova_lite import exception
from nova_lite.db import quotas
from nova_lite.db.models import allocations, instances, server_groups


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """has_rule tells whether max_server_per_host was given, or is the default."""

    id: int
    uuid: str
    project_id: str
    user_id: str
    name: str
    policy: str
    max_server_per_host: int
    has_rule: bool


_COLUMNS = tuple(server_groups.c[name] for name in ServerGroup.__dataclass_fields__)


def get(conn: sa.Connection, group_uuid: str, project_id: str | None = None) -> ServerGroup:
    """Return a group.

    :param project_id: whose group it has to be, None for anybody's.
    :raises ServerGroupNotFound: there is none, or it is another project's.
    """
    statement = sa.select(*_COLUMNS).where(server_groups.c.uuid == group_uuid)
    if project_id is not None:
        statement = statement.where(server_groups.c.project_id == project_id)
    row = conn.execute(statement).first()
    if row is None:
        raise exception.ServerGroupNotFound(uuid=group_uuid)
    return ServerGroup(*row)


def search(conn: sa.Connection, project_id: str | None, limit: int, offset: int = 0) -> list[ServerGroup]:
    """List a project's groups, all projects' for None, in the order in which they were made."""
    statement = sa.select(*_COLUMNS)
    if project_id is not None:
        statement = statement.where(server_groups.c.project_id == project_id)
    rows = conn.execute(statement.order_by(server_groups.c.id).limit(limit).offset(offset))
    return [ServerGroup(*row) for row in rows]


def members(conn: sa.Connection, group_ids: Sequence[int]) -> dict[int, list[str]]:
    """Return group id -> the uuids of the servers in it; a group without any is not there."""
    found: dict[int, list[str]] = {}
    if group_ids:
        statement = (
            sa.select(instances.c.group_id, instances.c.uuid)
            .where(instances.c.group_id.in_(group_ids), instances.c.deleted == 0)
            .order_by(instances.c.id)
        )
        for group_id, instance_uuid in conn.execute(statement):
            found.setdefault(group_id, []).append(instance_uuid)
    return found


def largest(conn: sa.Connection, project_id: str) -> int:
    """Return how many servers the project's fullest group has."""
    sizes = (
        sa.select(sa.func.count().label("size"))
        .select_from(instances)
        .join(server_groups, server_groups.c.id == instances.c.group_id)
        .where(server_groups.c.project_id == project_id, instances.c.deleted == 0)
        .group_by(instances.c.group_id)
        .subquery()
    )
    return int(conn.execute(sa.select(sa.func.max(sizes.c.size))).scalar_one() or 0)


def count(conn: sa.Connection, project_id: str, user_id: str | None = None) -> int:
    """Count the groups of a project, or of one user of it."""
    mine = [] if user_id is None else [server_groups.c.user_id == user_id]
    counted = sa.select(sa.func.count()).where(server_groups.c.project_id == project_id, *mine)
    return conn.execute(counted).scalar_one()


def create(
    conn: sa.Connection,
    conf: cfg.ConfigOpts,
    group_uuid: str,
    *,
    project_id: str,
    user_id: str,
    name: str,
    policy: str,
    max_server_per_host: int | None,
) -> ServerGroup:
    """Write a group and return it. Run again after a commit whose outcome is unknown, it finds the group there.

    :raises QuotaExceeded: the project has as many as are allowed.
    """
    quotas.lock(conn, project_id)
    if conn.execute(sa.select(server_groups.c.id).where(server_groups.c.uuid == group_uuid)).first():
        return get(conn, group_uuid)
    of_project = quotas.limits(conn, conf, project_id)["server_groups"]
    of_user = quotas.limits(conn, conf, project_id, user_id)["server_groups"]
    quotas.check_count("server_groups", count(conn, project_id), of_project)
    quotas.check_count("server_groups", count(conn, project_id, user_id), of_user)
    conn.execute(
        sa.insert(server_groups).values(
            uuid=group_uuid,
            project_id=project_id,
            user_id=user_id,
            name=name,
            policy=policy,
            max_server_per_host=max_server_per_host or 1,
            has_rule=max_server_per_host is not None,
        )
    )
    return get(conn, group_uuid)


def delete(conn: sa.Connection, group_id: int) -> None:
    """Remove a group; its servers stay, and are in no group from then on.

    What names the group is cleared, since SQLite gives the ids of removed rows to new ones.
    """
    conn.execute(sa.select(server_groups.c.id).where(server_groups.c.id == group_id).with_for_update())
    members = sa.update(instances).where(instances.c.group_id == group_id)
    conn.execute(members.values(group_id=None, updated_at=instances.c.updated_at))
    conn.execute(sa.update(allocations).where(allocations.c.group_id == group_id).values(group_id=None))
    conn.execute(sa.delete(server_groups).where(server_groups.c.id == group_id))

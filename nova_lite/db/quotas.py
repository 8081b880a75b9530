# SPDX-License-Identifier: Apache-2.0
"""Quotas: the limits of projects and of their users, and what they use of them.

What is used of instances, cores and ram is counted in one row a project, which whoever takes or gives back locks: of
two requests that ask for the last core, one gets it. Other resources are few, and are counted where they are, under
the same lock. A single user may have limits of their own within a project's; what such a user has is counted when it is
asked for, under the project's lock as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exception

from nova_lite import exception
from nova_lite.db.clock import now
from nova_lite.db.models import instances, quota_limits, quota_usages, user_quota_limits

UNLIMITED = -1

#: Every resource that has a limit; the names of the options in the group quota.
RESOURCES = (
    "instances",
    "cores",
    "ram",
    "metadata_items",
    "key_pairs",
    "server_groups",
    "server_group_members",
    "injected_files",
    "injected_file_content_bytes",
    "injected_file_path_length",
)

#: Resources of networks, which are kept for clients that set them, and limit nothing here.
NETWORK_RESOURCES = ("floating_ips", "fixed_ips", "security_groups", "security_group_rules")

# The limits that hold for projects without their own.
_DEFAULT_CLASS = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a project has: servers, virtual CPUs, MiB of memory."""

    instances: int = 0
    cores: int = 0
    ram: int = 0


# Built once: every create passes here, and building a statement costs more than running it.
_OF_CLASS, _OF_PROJECT, _OF_USER = range(3)
_LIMITS = sa.union_all(
    sa.select(
        quota_limits.c.resource,
        quota_limits.c.limit,
        sa.case((quota_limits.c.project_id == _DEFAULT_CLASS, _OF_CLASS), else_=_OF_PROJECT).label("whose"),
    ).where(quota_limits.c.project_id.in_((_DEFAULT_CLASS, sa.bindparam("project")))),
    sa.select(
        user_quota_limits.c.resource, user_quota_limits.c.limit, sa.literal(_OF_USER, literal_execute=True)
    ).where(
        user_quota_limits.c.project_id == sa.bindparam("project"), user_quota_limits.c.user_id == sa.bindparam("user")
    ),
).order_by("whose")
_USAGE_OF_USER = sa.select(
    sa.func.count(),
    sa.func.coalesce(sa.func.sum(instances.c.vcpus), 0),
    sa.func.coalesce(sa.func.sum(instances.c.memory_mb), 0),
).where(
    instances.c.project_id == sa.bindparam("project"),
    instances.c.user_id == sa.bindparam("user"),
    instances.c.deleted == 0,
)
_USAGE = sa.select(quota_usages.c.instances, quota_usages.c.cores, quota_usages.c.ram).where(
    quota_usages.c.project_id == sa.bindparam("project")
)
_LOCKED_USAGE = _USAGE.with_for_update()


def _plus(column: sa.Column[int], amount: sa.BindParameter[int]) -> sa.ColumnElement[int]:
    return sa.case((column + amount < 0, 0), else_=column + amount)


_ADD = (
    sa.update(quota_usages)
    .where(quota_usages.c.project_id == sa.bindparam("project"))
    .values(
        instances=_plus(quota_usages.c.instances, sa.bindparam("more_instances", type_=sa.Integer)),
        cores=_plus(quota_usages.c.cores, sa.bindparam("more_cores", type_=sa.BigInteger)),
        ram=_plus(quota_usages.c.ram, sa.bindparam("more_ram", type_=sa.BigInteger)),
        updated_at=now(),
    )
)


def defaults(conn: sa.Connection, conf: cfg.ConfigOpts) -> dict[str, int]:
    """Return the limits of a project without its own."""
    return limits(conn, conf, _DEFAULT_CLASS)


def limits(conn: sa.Connection, conf: cfg.ConfigOpts, project_id: str, user_id: str | None = None) -> dict[str, int]:
    """Return a project's limits by resource: its own, else the default class's, else the configured ones.

    :param user_id: whose limits to return: their own in the project, else the project's.
    """
    of_project, of_user = _limits(conn, conf, project_id, user_id)
    return {**of_project, **of_user}


def _limits(
    conn: sa.Connection, conf: cfg.ConfigOpts, project_id: str, user_id: str | None
) -> tuple[dict[str, int], dict[str, int]]:
    """Return a project's limits, and those that the user has of their own."""
    of_project = {resource: int(conf.quota[resource]) for resource in RESOURCES}
    of_project |= dict.fromkeys(NETWORK_RESOURCES, UNLIMITED)
    of_user: dict[str, int] = {}
    # The class's limits come first, so that a project's own one wins.
    for resource, limit, whose in conn.execute(_LIMITS, {"project": project_id, "user": user_id or ""}):
        if resource in of_project:
            (of_user if whose == _OF_USER else of_project)[resource] = limit
    return of_project, of_user


def limits_of_other_users(conn: sa.Connection, project_id: str, user_id: str | None) -> dict[str, int]:
    """Return, by resource, the sum of what a project's users but this one have as limits of their own."""
    column = user_quota_limits.c
    others = sa.and_(column.project_id == project_id, column.user_id != (user_id or ""), column.limit != UNLIMITED)
    found = conn.execute(sa.select(column.resource, sa.func.sum(column.limit)).where(others).group_by(column.resource))
    return {resource: int(limit) for resource, limit in found}


def set_limits(conn: sa.Connection, project_id: str, values: Mapping[str, int], user_id: str | None = None) -> None:
    """Give a project, or one of its users, limits of its own; the others stay as they are."""
    lock(conn, project_id)
    table, owner = _owned(project_id, user_id)
    mine = [table.c[name] == value for name, value in owner.items()]
    conn.execute(sa.delete(table).where(*mine, table.c.resource.in_(list(values))))
    if values:
        conn.execute(sa.insert(table), [{**owner, "resource": r, "limit": limit} for r, limit in values.items()])


def _owned(project_id: str, user_id: str | None) -> tuple[sa.Table, dict[str, str]]:
    """Return the table of limits, and the columns that say whose they are."""
    if user_id is None:
        return quota_limits, {"project_id": project_id}
    return user_quota_limits, {"project_id": project_id, "user_id": user_id}


def set_defaults(conn: sa.Connection, values: Mapping[str, int]) -> None:
    """Change the default class."""
    set_limits(conn, _DEFAULT_CLASS, values)


def clear_limits(conn: sa.Connection, project_id: str, user_id: str | None = None) -> None:
    """Take the own limits of a project and of all its users away, or those of one user."""
    if user_id is None:
        conn.execute(sa.delete(quota_limits).where(quota_limits.c.project_id == project_id))
    mine = [] if user_id is None else [user_quota_limits.c.user_id == user_id]
    conn.execute(sa.delete(user_quota_limits).where(user_quota_limits.c.project_id == project_id, *mine))


def usage(conn: sa.Connection, project_id: str, user_id: str | None = None) -> Usage:
    """Return what a project uses, or one user of it, without locking it."""
    statement = _USAGE if user_id is None else _USAGE_OF_USER
    row = conn.execute(statement, {"project": project_id, "user": user_id}).one_or_none()
    return Usage(int(row[0]), int(row[1]), int(row[2])) if row else Usage()


def lock(conn: sa.Connection, project_id: str) -> Usage:
    """Lock a project's row, making it if there is none, and return what the project uses."""
    row = conn.execute(_LOCKED_USAGE, {"project": project_id}).one_or_none()
    if row is None:
        try:
            with conn.begin_nested():
                conn.execute(sa.insert(quota_usages).values(project_id=project_id))
        except db_exception.DBDuplicateEntry:
            # Somebody else made it meanwhile; now it can be locked.
            pass
        row = conn.execute(_LOCKED_USAGE, {"project": project_id}).one()
    return Usage(row[0], row[1], row[2])


def reserve(
    conn: sa.Connection,
    conf: cfg.ConfigOpts,
    project_id: str,
    instances: int,
    cores: int,
    ram: int,
    user_id: str | None = None,
) -> None:
    """Take quota for servers that are about to be written in this transaction.

    :param user_id: whose servers they will be; None if no user's limits are to be minded.
    :raises QuotaExceeded: naming each resource of which there is not enough; nothing is taken.
    """
    used = lock(conn, project_id)
    of_project, of_user = _limits(conn, conf, project_id, user_id)
    asked = {"instances": instances, "cores": cores, "ram": ram}
    _check(asked, used, of_project)
    if any(of_user.get(resource, UNLIMITED) != UNLIMITED for resource in asked):
        _check(asked, usage(conn, project_id, user_id), {**of_project, **of_user})
    _add(conn, project_id, instances, cores, ram)


def _check(asked: Mapping[str, int], used: Usage, allowed: Mapping[str, int]) -> None:
    short = [
        resource
        for resource, amount in asked.items()
        if amount > 0 and allowed[resource] != UNLIMITED and getattr(used, resource) + amount > allowed[resource]
    ]
    if short:
        raise exception.QuotaExceeded(
            resource=", ".join(short),
            requested=", ".join(str(asked[r]) for r in short),
            used=", ".join(str(getattr(used, r)) for r in short),
            limit=", ".join(str(allowed[r]) for r in short),
        )


def release(conn: sa.Connection, project_id: str, instances: int, cores: int, ram: int) -> None:
    """Give quota back for servers that end in this transaction."""
    _add(conn, project_id, -instances, -cores, -ram)


def _add(conn: sa.Connection, project_id: str, instances: int, cores: int, ram: int) -> None:
    amounts = {"more_instances": instances, "more_cores": cores, "more_ram": ram}
    conn.execute(_ADD, {"project": project_id, **amounts})


def check_count(resource: str, used: int, limit: int, requested: int = 1) -> None:
    """Make sure that there is room for more of a resource that is counted where it is.

    :raises QuotaExceeded: there is not.
    """
    if limit != UNLIMITED and used + requested > limit:
        raise exception.QuotaExceeded(resource=resource, requested=requested, used=used, limit=limit)

# SPDX-License-Identifier: Apache-2.0
"""Quotas: the limits of projects, and what they use of them.

What is used of instances, cores and ram is counted in one row a project, which whoever takes or gives back locks: of
two requests that ask for the last core, one gets it. Other resources are few, and are counted where they are, under
the same lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exception

from nova_lite import exception
from nova_lite.db.clock import now
from nova_lite.db.models import quota_limits, quota_usages

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
_LIMITS = (
    sa.select(quota_limits.c.resource, quota_limits.c.limit)
    .where(quota_limits.c.project_id.in_((_DEFAULT_CLASS, sa.bindparam("project"))))
    .order_by(quota_limits.c.project_id)
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


def limits(conn: sa.Connection, conf: cfg.ConfigOpts, project_id: str) -> dict[str, int]:
    """Return a project's limits by resource: its own, else the default class's, else the configured ones."""
    found = {resource: int(conf.quota[resource]) for resource in RESOURCES}
    found |= dict.fromkeys(NETWORK_RESOURCES, UNLIMITED)
    # "" sorts first, so that a project's own limit comes last and wins.
    for resource, limit in conn.execute(_LIMITS, {"project": project_id}):
        if resource in found:
            found[resource] = limit
    return found


def set_limits(conn: sa.Connection, project_id: str, values: Mapping[str, int]) -> None:
    """Give a project limits of its own; the others stay as they are."""
    lock(conn, project_id)
    mine = sa.and_(quota_limits.c.project_id == project_id, quota_limits.c.resource.in_(list(values)))
    conn.execute(sa.delete(quota_limits).where(mine))
    if values:
        rows = [{"project_id": project_id, "resource": r, "limit": limit} for r, limit in values.items()]
        conn.execute(sa.insert(quota_limits), rows)


def set_defaults(conn: sa.Connection, values: Mapping[str, int]) -> None:
    """Change the default class."""
    set_limits(conn, _DEFAULT_CLASS, values)


def clear_limits(conn: sa.Connection, project_id: str) -> None:
    """Take a project's own limits away."""
    conn.execute(sa.delete(quota_limits).where(quota_limits.c.project_id == project_id))


def usage(conn: sa.Connection, project_id: str) -> Usage:
    """Return what a project uses, without locking it."""
    row = conn.execute(_USAGE, {"project": project_id}).one_or_none()
    return Usage(row[0], row[1], row[2]) if row else Usage()


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


def reserve(conn: sa.Connection, conf: cfg.ConfigOpts, project_id: str, instances: int, cores: int, ram: int) -> None:
    """Take quota for servers that are about to be written in this transaction.

    :raises QuotaExceeded: naming each resource of which there is not enough; nothing is taken.
    """
    used = lock(conn, project_id)
    allowed = limits(conn, conf, project_id)
    asked = {"instances": instances, "cores": cores, "ram": ram}
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
    _add(conn, project_id, instances, cores, ram)


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

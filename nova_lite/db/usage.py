# SPDX-License-Identifier: Apache-2.0
"""What projects used over a time: the servers that ran in it, also those that are deleted by now."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db.clock import Timestamp, now
from nova_lite.db.models import instances


@dataclass(frozen=True, slots=True)
class ServerUsage:
    """A server that ran. sizes are as its flavor had them: MiB and GiB."""

    uuid: str
    name: str
    project_id: str
    flavor: str
    vcpus: int
    memory_mb: int
    local_gb: int
    vm_state: str
    launched_at: datetime.datetime
    terminated_at: datetime.datetime | None


def clock(conn: sa.Connection) -> datetime.datetime:
    """Return the database's time."""
    return conn.execute(sa.select(sa.type_coerce(now(), Timestamp))).scalar_one()


def search(
    conn: sa.Connection,
    start: datetime.datetime,
    stop: datetime.datetime,
    project_id: str | None = None,
    limit: int | None = None,
    marker: str | None = None,
) -> list[ServerUsage]:
    """List the servers of a project (of all for None) that ran at some time from start to stop, by uuid.

    :param marker: the uuid after which the list begins.
    :raises BadRequest: the marker is no uuid of a server that could be listed.
    """
    ended = sa.func.coalesce(instances.c.terminated_at, instances.c.deleted_at)
    statement = sa.select(
        instances.c.uuid,
        instances.c.name,
        instances.c.project_id,
        instances.c.flavor,
        instances.c.vm_state,
        instances.c.launched_at,
        ended.label("ended"),
    ).where(instances.c.launched_at < stop, sa.or_(ended.is_(None), ended > start))
    if project_id is not None:
        statement = statement.where(instances.c.project_id == project_id)
    if marker is not None:
        known = sa.select(instances.c.id).where(instances.c.uuid == marker)
        if project_id is not None:
            known = known.where(instances.c.project_id == project_id)
        if conn.execute(known).first() is None:
            raise exception.BadRequest(f"marker [{marker}] not found")
        statement = statement.where(instances.c.uuid > marker)
    return [_usage(row) for row in conn.execute(statement.order_by(instances.c.uuid).limit(limit))]


def _usage(row: Any) -> ServerUsage:
    values = row._mapping
    flavor = json.loads(values["flavor"])
    return ServerUsage(
        uuid=values["uuid"],
        name=values["name"],
        project_id=values["project_id"],
        flavor=flavor["name"],
        vcpus=flavor["vcpus"],
        memory_mb=flavor["memory_mb"],
        local_gb=flavor["root_gb"] + flavor["ephemeral_gb"],
        vm_state=values["vm_state"],
        launched_at=values["launched_at"],
        terminated_at=values["ended"],
    )

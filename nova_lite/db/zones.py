# SPDX-License-Identifier: Apache-2.0
"""Availability zones: which zone each host is in, by the metadata of its aggregates."""

from __future__ import annotations

import json
from collections.abc import Collection

import sqlalchemy as sa

from nova_lite.db.models import aggregate_hosts, aggregates

METADATA_KEY = "availability_zone"


def by_host(conn: sa.Connection, hosts: Collection[str] | None = None) -> dict[str, str]:
    """Return host -> zone of the hosts (of all for None) that an aggregate puts into one; the others are not in it."""
    if hosts is not None and not hosts:
        return {}
    statement = (
        sa.select(aggregate_hosts.c.host, aggregates.c.metadata)
        .join(aggregates, aggregates.c.id == aggregate_hosts.c.aggregate_id)
        .order_by(aggregates.c.id)
    )
    if hosts is not None:
        statement = statement.where(aggregate_hosts.c.host.in_(sorted(hosts)))
    found = {}
    for host, text in conn.execute(statement):
        zone = json.loads(text).get(METADATA_KEY)
        if zone:
            found[host] = str(zone)
    return found

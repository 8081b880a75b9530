# SPDX-License-Identifier: Apache-2.0
"""The ports of servers on the built-in network, as the API lists them: an address and whose it is."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import NamedTuple

import sqlalchemy as sa

from nova_lite.db.models import addresses, instances


class PortRow(NamedTuple):
    """A port, and the server that has it."""

    id: int
    port: str
    network: str
    address: int
    mac: str
    created_at: datetime.datetime
    instance_uuid: str
    project_id: str
    host: str | None
    vm_state: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which ports are wanted; None is any."""

    project_id: str | None = None
    ports: Collection[str] | None = None
    servers: Collection[str] | None = None
    addresses: Collection[str] | None = None


_COLUMNS = (
    addresses.c.id,
    addresses.c.port,
    addresses.c.network,
    addresses.c.address,
    addresses.c.mac,
    addresses.c.created_at,
    addresses.c.instance_uuid,
    instances.c.project_id,
    instances.c.host,
    instances.c.vm_state,
)


def search(conn: sa.Connection, wanted: Wanted, limit: int, after: int = 0) -> list[PortRow]:
    """Return ports of servers that are not deleted, in the order in which they came to be.

    :param after: the id of the row that the page comes after.
    """
    statement = (
        sa.select(*_COLUMNS)
        .join(instances, instances.c.uuid == addresses.c.instance_uuid)
        .where(instances.c.deleted == 0, addresses.c.id > after)
        .order_by(addresses.c.id)
        .limit(limit)
    )
    if wanted.project_id is not None:
        statement = statement.where(instances.c.project_id == wanted.project_id)
    if wanted.ports is not None:
        statement = statement.where(addresses.c.port.in_(wanted.ports))
    if wanted.servers is not None:
        statement = statement.where(addresses.c.instance_uuid.in_(wanted.servers))
    if wanted.addresses is not None:
        statement = statement.where(addresses.c.address.in_([int(IPv4Address(text)) for text in wanted.addresses]))
    return [PortRow._make(row) for row in conn.execute(statement)]

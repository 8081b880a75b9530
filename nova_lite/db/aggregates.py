# SPDX-License-Identifier: Apache-2.0
"""Aggregates of hosts, with the metadata that scheduling goes by. One with the key availability_zone makes a zone.

A host is in one zone at the most, and does not change it while servers are on it: a server stays in the zone that it
was asked for. Every change touches the aggregate and the nodes of its hosts, so that schedulers notice.
"""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exception

from nova_lite import exception
from nova_lite.db import zones
from nova_lite.db.clock import now
from nova_lite.db.models import aggregate_hosts, aggregates, compute_nodes, instances, services
from nova_lite.db.registry import COMPUTE
from nova_lite.db.zones import METADATA_KEY

_STAY = (
    "Changing the AZ of an existing instance is not supported by this action. Move the instances away from this host "
    "then try again. If you need to move the instances between AZs then you can use shelve_offload and unshelve to "
    "achieve this."
)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """How the error sentences call what was tried."""

    what: str
    done: str


_ADD = _Attempt("add host to", "added to")
_REMOVE = _Attempt("remove host from", "removed from")
_UPDATE = _Attempt("update", "kept in")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """metadata includes the availability zone."""

    id: int
    uuid: str
    name: str
    metadata: dict[str, str]
    hosts: tuple[str, ...]
    created_at: datetime.datetime
    updated_at: datetime.datetime

    @property
    def zone(self) -> str | None:
        return self.metadata.get(METADATA_KEY)


_COLUMNS = tuple(aggregates.c[name] for name in Aggregate.__dataclass_fields__ if name in aggregates.c)


def search(conn: sa.Connection, aggregate_id: int | None = None) -> list[Aggregate]:
    """List all aggregates, or the one with the id."""
    statement, hosts_of = sa.select(*_COLUMNS), sa.select(aggregate_hosts.c.aggregate_id, aggregate_hosts.c.host)
    if aggregate_id is not None:
        statement = statement.where(aggregates.c.id == aggregate_id)
        hosts_of = hosts_of.where(aggregate_hosts.c.aggregate_id == aggregate_id)
    hosts: dict[int, list[str]] = {}
    for owner, host in conn.execute(hosts_of.order_by(aggregate_hosts.c.host)):
        hosts.setdefault(owner, []).append(host)
    return [
        Aggregate(**{**row._mapping, "metadata": json.loads(row.metadata), "hosts": tuple(hosts.get(row.id, ()))})
        for row in conn.execute(statement.order_by(aggregates.c.id))
    ]


def get(conn: sa.Connection, aggregate_id: int) -> Aggregate:
    """:raises AggregateNotFound: there is none."""
    found = search(conn, aggregate_id)
    if not found:
        raise exception.AggregateNotFound(aggregate=aggregate_id)
    return found[0]


def _lock(conn: sa.Connection, aggregate_id: int) -> Aggregate:
    """Lock an aggregate's row and return it. Memberships and zones change under the locks of all aggregates."""
    conn.execute(sa.select(aggregates.c.id).order_by(aggregates.c.id).with_for_update())
    return get(conn, aggregate_id)


def create(conn: sa.Connection, name: str, zone: str | None) -> Aggregate:
    """Write a new aggregate and return it.

    :raises Conflict: the name is taken.
    """
    metadata = {METADATA_KEY: zone} if zone else {}
    values = {"uuid": str(uuid.uuid4()), "name": name, "metadata": json.dumps(metadata)}
    try:
        key = conn.execute(sa.insert(aggregates).values(**values)).inserted_primary_key
    except db_exception.DBDuplicateEntry:
        raise exception.Conflict(f"Aggregate {name} already exists.")
    return get(conn, key[0] if key else 0)


def update(conn: sa.Connection, aggregate_id: int, name: str | None, metadata: Mapping[str, str | None]) -> Aggregate:
    """Change the name (None: keep it) and metadata items (None: remove it), and return the aggregate.

    :raises AggregateNotFound: there is none.
    :raises Conflict: the name is taken.
    :raises BadRequest: the zone of hosts with servers would change, or hosts would be in two zones.
    """
    old = _lock(conn, aggregate_id)
    new = {k: v for k, v in {**old.metadata, **metadata}.items() if v is not None}
    if new.get(METADATA_KEY) != old.zone:
        try:
            for host in old.hosts:
                _check_zone(conn, old, host, new.get(METADATA_KEY), _UPDATE)
        except exception.Conflict as error:
            raise exception.BadRequest(str(error))
    values: dict[str, Any] = {"metadata": json.dumps(new), "updated_at": now()}
    if name is not None:
        values["name"] = name
    try:
        conn.execute(sa.update(aggregates).where(aggregates.c.id == aggregate_id).values(**values))
    except db_exception.DBDuplicateEntry:
        raise exception.Conflict(f"Aggregate {name} already exists.")
    _touch_nodes(conn, old.hosts)
    return get(conn, aggregate_id)


def delete(conn: sa.Connection, aggregate_id: int) -> None:
    """Remove an empty aggregate.

    :raises AggregateNotFound: there is none.
    :raises BadRequest: it has hosts.
    """
    if _lock(conn, aggregate_id).hosts:
        raise exception.BadRequest(f"Cannot delete aggregate {aggregate_id}. Reason: Host aggregate is not empty.")
    conn.execute(sa.delete(aggregates).where(aggregates.c.id == aggregate_id))


def add_host(conn: sa.Connection, aggregate_id: int, host: str) -> Aggregate:
    """Put a compute host into an aggregate.

    :raises NotFound: there is no such aggregate, or no such host.
    :raises Conflict: it is in already, or its zone would change.
    """
    old = _lock(conn, aggregate_id)
    known = sa.select(services.c.id).where(services.c.host == host, services.c.binary == COMPUTE)
    if conn.execute(known).first() is None:
        raise exception.NotFound(f"Compute host {host} could not be found.")
    if host in old.hosts:
        raise exception.Conflict(f"Aggregate {aggregate_id} already has host {host}.")
    if old.zone:
        _check_zone(conn, old, host, old.zone, _ADD)
    conn.execute(sa.insert(aggregate_hosts).values(aggregate_id=aggregate_id, host=host))
    return _touched(conn, aggregate_id, host)


def remove_host(conn: sa.Connection, aggregate_id: int, host: str) -> Aggregate:
    """Take a host out of an aggregate.

    :raises NotFound: there is no such aggregate, or the host is not in it.
    :raises Conflict: its zone would change.
    """
    old = _lock(conn, aggregate_id)
    if host not in old.hosts:
        raise exception.NotFound(f"Aggregate {aggregate_id} has no host {host}.")
    if old.zone:
        _check_zone(conn, old, host, None, _REMOVE)
    mine = sa.and_(aggregate_hosts.c.aggregate_id == aggregate_id, aggregate_hosts.c.host == host)
    conn.execute(sa.delete(aggregate_hosts).where(mine))
    return _touched(conn, aggregate_id, host)


def _check_zone(conn: sa.Connection, aggregate: Aggregate, host: str, zone: str | None, attempt: _Attempt) -> None:
    """Make sure that a host may be in a zone as a member of the aggregate.

    :raises Conflict: another aggregate puts it into another zone, or it has servers in the zone that it is in.
    """
    cannot = f"Cannot {attempt.what} aggregate {aggregate.id}. Reason:"
    others = {one.zone for one in search(conn) if one.id != aggregate.id and host in one.hosts and one.zone}
    if zone and others - {zone}:
        names = ", ".join(sorted(str(other) for other in others))
        raise exception.Conflict(f"{cannot} One or more hosts already in availability zone(s) {names}.")
    before, after = zones.by_host(conn, [host]).get(host), zone or next(iter(others), None)
    here = sa.select(sa.func.count()).where(instances.c.host == host, instances.c.deleted == 0)
    count = conn.execute(here).scalar_one()
    if before != after and count:
        raise exception.Conflict(
            f"{cannot} The host cannot be {attempt.done} the aggregate as the availability zone of the host would "
            f"change from '{before}' to '{after}' but the host already has {count} instance(s). {_STAY}"
        )


def _touched(conn: sa.Connection, aggregate_id: int, host: str) -> Aggregate:
    conn.execute(sa.update(aggregates).where(aggregates.c.id == aggregate_id).values(updated_at=now()))
    _touch_nodes(conn, [host])
    return get(conn, aggregate_id)


def _touch_nodes(conn: sa.Connection, hosts: Collection[str]) -> None:
    if hosts:
        conn.execute(sa.update(compute_nodes).where(compute_nodes.c.host.in_(hosts)).values(updated_at=now()))

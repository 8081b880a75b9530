# SPDX-License-Identifier: Apache-2.0
"""Addresses of the built-in network: who has which, handed out so that no two servers ever have the same.

    (free) ──assign, reserve──> a server's ──deleted, domain gone──> (free)
                                    └──deleted, domain perhaps left──> leaving ──host says that it is gone──> (free)

An address is taken in the transaction that writes it into its server's row (``networks``), under the lock of the
network's row, which also remembers where the next search begins: what has just been given back is given out again last.
The key on the address is the last word. It is a server's own until the server is deleted, wherever that moves to, and
nobody else's before every host that may still run a domain of it has said that it does not.

Locks come after those of the instances (db/grants.py states the order): the network's row, then addresses.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import sqlalchemy as sa
from oslo_db import exception as db_exception

from nova_lite import exception
from nova_lite.db.clock import now
from nova_lite.db.models import addresses, instances, networks
from nova_lite.objects import instance as states
from nova_lite.objects.instance import NetworkRequest
from nova_lite.objects.network import Network, Port

# How many addresses are looked at in one statement.
_WINDOW = 4096

_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_INSTANCES_LOCKED = (
    sa.select(instances.c.uuid, instances.c.networks, instances.c.task_state)
    .where(instances.c.uuid.in_(_UUIDS), instances.c.deleted == 0)
    .order_by(instances.c.id)
    .with_for_update()
)
_NETWORK_LOCKED = sa.select(networks.c.next_address).where(networks.c.uuid == sa.bindparam("network")).with_for_update()
_TAKEN = sa.select(addresses.c.address).where(
    addresses.c.address.between(sa.bindparam("low"), sa.bindparam("high")),
)
_INSERT = sa.insert(addresses)

_decoder = msgspec.json.Decoder(tuple[NetworkRequest, ...])

#: A server's place: its host and its node.
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Leaving:
    """An address of a deleted server that a host has yet to say is no longer in use there."""

    instance_uuid: str
    host: str
    node: str


def wants_address(networks_text: str) -> bool:
    """Tell of a server's networks column whether an address is still to be found for it."""
    return any(request.kind == "auto" and request.port is None for request in _decoder.decode(networks_text))


def has_address(networks_text: str) -> bool:
    """Tell of a server's networks column whether it has an address."""
    return '"address"' in networks_text


def port_of(networks_text: str) -> Port | None:
    """Return the port of a server's networks column."""
    if not has_address(networks_text):
        return None
    return next((request.port for request in _decoder.decode(networks_text) if request.port is not None), None)


def assign(conn: sa.Connection, network: Network, uuids: Sequence[str]) -> dict[str, str]:
    """Give each of the servers an address that wants one and has none; return uuid -> its networks column afterwards.

    Six statements, however many servers. For those that are being deleted by now, or for which no address is left,
    nothing is returned.
    """
    rows = conn.execute(_INSTANCES_LOCKED, {"uuids": uuids})
    # Whoever finishes a delete has read its row when that had begun, and would not see an address that came later.
    found = {row.uuid: row.networks for row in rows if row.task_state != states.DELETING}
    wanting = [uuid for uuid in uuids if uuid in found and wants_address(found[uuid])]
    if not wanting:
        return found
    free = _find_free(conn, network, len(wanting))
    texts = {}
    ports = {}
    for uuid, number in zip(wanting, free, strict=False):
        requests = _decoder.decode(found[uuid])
        ports[uuid] = (network.port(uuid, number, requests[0].tag), number)
        texts[uuid] = _text([replace(request, port=ports[uuid][0]) for request in requests])
    if texts:
        conn.execute(_INSERT, [_row(network.id, uuid, *port) for uuid, port in ports.items()])
        conn.execute(
            sa.update(networks).where(networks.c.uuid == network.id).values(next_address=free[-1] + 1, updated_at=now())
        )
        conn.execute(
            sa.update(instances)
            .where(instances.c.uuid.in_(list(texts)))
            .values(networks=sa.case(texts, value=instances.c.uuid), updated_at=now())
        )
    return {uuid: texts.get(uuid, text) for uuid, text in found.items() if uuid in texts or uuid not in wanting}


def _find_free(conn: sa.Connection, network: Network, count: int) -> list[int]:
    """Return so many free addresses, or as many as there are; the network's row is locked from now on."""
    start, free = _lock(conn, network.id), list[int]()
    for window in network.windows(start, _WINDOW):
        taken = set(conn.execute(_TAKEN, {"low": window[0], "high": window[-1]}).scalars())
        free += [number for number in window if number not in taken and network.is_usable(number)][: count - len(free)]
        if len(free) == count:
            break
    return free


def _lock(conn: sa.Connection, network_id: str) -> int:
    """Lock the network's row, making it if there is none; return where the next search begins."""
    row = conn.execute(_NETWORK_LOCKED, {"network": network_id}).one_or_none()
    if row is None:
        try:
            with conn.begin_nested():
                conn.execute(sa.insert(networks).values(uuid=network_id))
        except db_exception.DBDuplicateEntry:
            # Somebody else made it meanwhile; now it can be locked.
            pass
        row = conn.execute(_NETWORK_LOCKED, {"network": network_id}).one()
    return int(row[0])


def reserve(conn: sa.Connection, instance_uuid: str, port: Port, number: int) -> None:
    """Take the address that a server asks for by name; its row names it already.

    :raises BadRequest: it is another server's.
    """
    _lock(conn, port.network_id)
    if conn.execute(sa.select(addresses.c.id).where(addresses.c.address == number)).first():
        raise exception.BadRequest(
            f"Fixed IP address {port.address} is already in use on network {port.network_id}: ask for another, or for "
            "none, to be given one that is free."
        )
    conn.execute(_INSERT, [_row(port.network_id, instance_uuid, port, number)])


def _row(network_id: str, instance_uuid: str, port: Port, number: int) -> dict[str, Any]:
    return {
        "network": network_id,
        "address": number,
        "mac": port.mac,
        "port": port.id,
        "instance_uuid": instance_uuid,
    }


def _text(requests: Sequence[NetworkRequest]) -> str:
    return msgspec.json.encode(requests).decode()


def release(conn: sa.Connection, uuids: Collection[str], left: Mapping[str, Collection[Place]]) -> None:
    """Give back the addresses of servers that are deleted in this transaction.

    :param left: uuid -> where a domain may still be; the address leaves these places first.
    """
    gone = sorted(set(uuids) - {uuid for uuid, places in left.items() if places})
    if gone:
        conn.execute(sa.delete(addresses).where(addresses.c.instance_uuid.in_(gone)))
    for uuid in sorted(set(uuids) - set(gone)):
        places = json.dumps(sorted(left[uuid]))
        mine = addresses.c.instance_uuid == uuid
        conn.execute(sa.update(addresses).where(mine).values(leaving=places, leaving_since=now()))


def leaving(conn: sa.Connection, hosts: Collection[str]) -> list[Leaving]:
    """Return the addresses that these hosts have yet to say are no longer in use."""
    statement = sa.select(addresses.c.instance_uuid, addresses.c.leaving).where(addresses.c.leaving_since.is_not(None))
    wanted = set(hosts)
    return [
        Leaving(uuid, host, node)
        for uuid, places in conn.execute(statement)
        for host, node in json.loads(places)
        if host in wanted
    ]


def vacated(conn: sa.Connection, instance_uuid: str, host: str) -> bool:
    """Note that no domain of a deleted server is on a host; returns whether its address is free now."""
    return _leave(conn, addresses.c.instance_uuid == instance_uuid, host) > 0


def forget_host(conn: sa.Connection, host: str) -> int:
    """Free the addresses that wait for a host which does not come back; returns how many are free now."""
    return _leave(conn, sa.true(), host)


def _leave(conn: sa.Connection, which: sa.ColumnElement[bool], host: str) -> int:
    mine = sa.and_(which, addresses.c.leaving_since.is_not(None))
    freed = 0
    for row in conn.execute(sa.select(addresses.c.id, addresses.c.leaving).where(mine).with_for_update()).all():
        places = json.loads(row.leaving)
        rest = [place for place in places if place[0] != host]
        if not rest:
            conn.execute(sa.delete(addresses).where(addresses.c.id == row.id))
            freed += 1
        elif len(rest) < len(places):
            conn.execute(sa.update(addresses).where(addresses.c.id == row.id).values(leaving=json.dumps(rest)))
    return freed

# SPDX-License-Identifier: Apache-2.0
"""What an audit reads, all in one snapshot, and the transactions that repair what it finds.

A repair locks in the order that db/grants.py states, looks again at what was found, and changes nothing if it is no
longer so: an audit's list is old by the time that somebody acts on it. Each returns whether it changed anything.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

import sqlalchemy as sa

from nova_lite.db import addresses as addresses_db
from nova_lite.db import allocations as allocations_db
from nova_lite.db import moves as moves_db
from nova_lite.db import operations as operations_db
from nova_lite.db import quotas
from nova_lite.db.clock import now
from nova_lite.db.models import (
    addresses,
    allocations,
    compute_nodes,
    grants,
    instances,
    migrations,
    operations,
    quota_usages,
    server_groups,
    services,
)
from nova_lite.db.registry import COMPUTE
from nova_lite.objects import instance as states

_PARTS = ("vcpus", "memory_mb", "disk_gb")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows of one moment. at is the database's time; the rows have the columns that ``read`` selects.

    patience is how many seconds may pass before what ends by itself should have ended.
    """

    at: datetime.datetime
    nodes: dict[int, sa.Row[Any]]
    groups: dict[int, sa.Row[Any]]
    allocations: list[sa.Row[Any]]
    grants: list[sa.Row[Any]]
    servers: dict[str, sa.Row[Any]]
    operations: list[sa.Row[Any]]
    moves: dict[str, sa.Row[Any]]
    quotas: dict[str, sa.Row[Any]]
    addresses: list[sa.Row[Any]]
    patience: float

    def is_young(self, since: datetime.datetime) -> bool:
        """Tell whether what began then may still end by itself."""
        return since > self.at - datetime.timedelta(seconds=self.patience)


def read(conn: sa.Connection, patience: float) -> Snapshot:
    """Read all that takes part in the books: every node, allocation, grant, active operation and living server.

    Deleted servers are read only if something still refers to them. To be called in a ``Database.read``.

    :param patience: seconds after which what should have ended by itself is no longer waited for.
    """
    consumers = (allocations.c.consumer, grants.c.consumer, addresses.c.instance_uuid)
    held = sa.union(*(sa.select(column) for column in consumers))
    wanted = sa.or_(
        instances.c.deleted == 0,
        instances.c.uuid.in_(held),
        instances.c.uuid.in_(sa.select(operations.c.instance_uuid).where(operations.c.status == operations_db.ACTIVE)),
    )
    servers = sa.select(*(column for column in instances.c if column.name in _SERVER_COLUMNS)).where(wanted)
    active = operations.c.status == operations_db.ACTIVE
    return Snapshot(
        at=operations_db.database_time(conn),
        nodes={row.id: row for row in conn.execute(sa.select(compute_nodes).order_by(compute_nodes.c.id))},
        groups={row.id: row for row in conn.execute(sa.select(server_groups).order_by(server_groups.c.id))},
        allocations=list(conn.execute(sa.select(allocations).order_by(allocations.c.id))),
        grants=list(conn.execute(sa.select(grants).order_by(grants.c.id))),
        servers={row.uuid: row for row in conn.execute(servers.order_by(instances.c.id))},
        operations=list(conn.execute(sa.select(operations).where(active).order_by(operations.c.id))),
        moves={row.uuid: row for row in conn.execute(sa.select(migrations).where(migrations.c.open.is_(True)))},
        quotas={row.project_id: row for row in conn.execute(sa.select(quota_usages))},
        addresses=list(conn.execute(sa.select(addresses).order_by(addresses.c.address))),
        patience=patience,
    )


_SERVER_COLUMNS = frozenset(
    ("uuid", "project_id", "vm_state", "task_state", "host", "node", "node_id", "group_id", "networks")
    + ("deleted", "deleted_at", "updated_at")
    + _PARTS
)


def deleted_servers(conn: sa.Connection, uuids: Iterable[str]) -> dict[str, datetime.datetime]:
    """Return when those of the servers that are deleted were, by uuid."""
    mine = sa.and_(instances.c.uuid.in_(sorted(uuids)), instances.c.deleted != 0)
    return {row[0]: row[1] for row in conn.execute(sa.select(instances.c.uuid, instances.c.deleted_at).where(mine))}


def compute_servers(conn: sa.Connection, down_time: float) -> dict[str, tuple[list[str], bool]]:
    """Return the name of each compute's RPC server -> its hosts, and whether any of them is up."""
    alive = sa.and_(services.c.last_seen_at > now(-down_time), services.c.forced_down.is_(False))
    statement = sa.select(services.c.server, services.c.host, alive).where(services.c.binary == COMPUTE)
    found: dict[str, tuple[list[str], bool]] = {}
    for server, host, up in conn.execute(statement.order_by(services.c.host)):
        hosts, before = found.get(server, ([], False))
        found[server] = ([*hosts, host], before or bool(up))
    return found


# -- repairs: nodes and allocations


def recount_node(conn: sa.Connection, node_id: int) -> bool:
    """Set what a node says is used, and its counters, to what its allocations say."""
    _lock_nodes(conn, [node_id])
    return _recount(conn, [node_id])


def _lock_nodes(conn: sa.Connection, node_ids: Iterable[int | None]) -> None:
    ids = sorted({node_id for node_id in node_ids if node_id is not None})
    statement = sa.select(compute_nodes.c.id).where(compute_nodes.c.id.in_(ids)).order_by(compute_nodes.c.id)
    conn.execute(statement.with_for_update()).all()


def _recount(conn: sa.Connection, node_ids: Collection[int | None]) -> bool:
    """Recount locked nodes; returns whether any was wrong."""
    here = allocations.c.node_id == compute_nodes.c.id
    values: dict[str, Any] = {
        f"used_{part}": sa.select(sa.func.coalesce(sa.func.sum(allocations.c[part]), 0)).where(here).scalar_subquery()
        for part in _PARTS
    }
    values["instances"] = sa.select(sa.func.count()).select_from(allocations).where(here).scalar_subquery()
    values["building"] = (
        sa.select(sa.func.count())
        .select_from(allocations.join(instances, instances.c.uuid == allocations.c.consumer))
        .where(here, instances.c.vm_state.in_(states.BUILT_ANEW), instances.c.deleted == 0)
        .scalar_subquery()
    )
    wrong = sa.or_(*(compute_nodes.c[name] != value for name, value in values.items()))
    mine = compute_nodes.c.id.in_([node_id for node_id in node_ids if node_id is not None])
    return conn.execute(sa.update(compute_nodes).where(mine, wrong).values(**values)).rowcount > 0


def remove_allocation(conn: sa.Connection, allocation_id: int) -> bool:
    """Delete an allocation whose server is gone or is on no host, and recount its node."""
    row = conn.execute(sa.select(allocations).where(allocations.c.id == allocation_id)).one_or_none()
    if row is None:
        return False
    _lock_nodes(conn, [row.node_id])
    held = conn.execute(sa.select(allocations.c.id).where(allocations.c.id == allocation_id).with_for_update()).first()
    server = _lock_server(conn, row.consumer)
    if held is None or (server is not None and not server.deleted and server.node_id is not None):
        return False
    conn.execute(sa.delete(allocations).where(allocations.c.id == allocation_id))
    _recount(conn, [row.node_id])
    return True


def move_allocation(conn: sa.Connection, allocation_id: int) -> bool:
    """Bring an allocation to the node, size and group of the row of its server, which no operation works on."""
    row = conn.execute(sa.select(allocations).where(allocations.c.id == allocation_id)).one_or_none()
    if row is None:
        return False
    before = conn.execute(sa.select(instances.c.node_id).where(instances.c.uuid == row.consumer)).scalar_one_or_none()
    _lock_nodes(conn, [row.node_id, before])
    conn.execute(sa.select(allocations.c.id).where(allocations.c.id == allocation_id).with_for_update()).all()
    server = _lock_server(conn, row.consumer)
    if server is None or server.deleted or server.node_id is None or server.node_id != before:
        return False
    there = conn.execute(sa.select(compute_nodes.c.id).where(compute_nodes.c.id == server.node_id)).first()
    if there is None or row.migration or _is_worked_on(conn, row.consumer):
        return False
    values = {
        "node_id": server.node_id,
        "group_id": server.group_id,
        **{part: getattr(server, part) for part in _PARTS},
    }
    if all(getattr(row, name) == value for name, value in values.items()):
        return False
    conn.execute(sa.update(allocations).where(allocations.c.id == allocation_id).values(**values))
    _recount(conn, [row.node_id, server.node_id])
    return True


def book_server(conn: sa.Connection, uuid: str) -> bool:
    """Write the allocation that a server on a host should have; what runs there takes its place anyway."""
    node_id = conn.execute(sa.select(instances.c.node_id).where(instances.c.uuid == uuid)).scalar_one_or_none()
    _lock_nodes(conn, [node_id])
    own = sa.and_(allocations.c.consumer == uuid, allocations.c.migration == "")
    held = conn.execute(sa.select(allocations.c.id).where(own).with_for_update()).first()
    server = _lock_server(conn, uuid)
    if held or server is None or server.deleted or server.node_id != node_id or node_id is None:
        return False
    amounts = {part: getattr(server, part) for part in _PARTS}
    conn.execute(sa.insert(allocations).values(consumer=uuid, node_id=node_id, group_id=server.group_id, **amounts))
    _recount(conn, [node_id])
    return True


def remove_half(conn: sa.Connection, migration: str) -> bool:
    """Give back what a move that is over still holds."""
    mine = sa.and_(migrations.c.uuid == migration, migrations.c.open.is_(True))
    row = conn.execute(sa.select(allocations.c.consumer).where(allocations.c.migration == migration)).first()
    if row is None or conn.execute(sa.select(migrations.c.id).where(mine)).first():
        return False
    return allocations_db.release_half(conn, row.consumer, migration)


def end_move(conn: sa.Connection, migration: str) -> bool:
    """End a move that nothing works on, and give back what it holds."""
    mine = sa.and_(migrations.c.uuid == migration, migrations.c.open.is_(True))
    row = conn.execute(sa.select(migrations).where(mine)).one_or_none()
    if row is None or row.status in ("finished", "done") or _is_worked_on(conn, row.instance_uuid):
        return False
    message = "Nothing worked on this move any more, as an audit found."
    moves_db.drop_open(conn, [row.instance_uuid], "error", message, migration)
    return True


def name_host(conn: sa.Connection, uuid: str) -> bool:
    """Set the host that a server's row names to the one of the node that it is on."""
    server = _lock_server(conn, uuid)
    if server is None or server.deleted:
        return False
    columns = (compute_nodes.c.host, compute_nodes.c.node)
    node = conn.execute(sa.select(*columns).where(compute_nodes.c.id == server.node_id)).one_or_none()
    if node is None or (server.host, server.node) == (node.host, node.node):
        return False
    mine = instances.c.uuid == uuid
    conn.execute(sa.update(instances).where(mine).values(host=node.host, node=node.node, updated_at=now()))
    return True


# -- repairs: grants, quotas


def remove_grant(conn: sa.Connection, grant_id: int) -> bool:
    """Delete a grant that has expired, whose node or server is gone, or whose server has its allocation."""
    row = conn.execute(sa.select(grants).where(grants.c.id == grant_id)).one_or_none()
    if row is None:
        return False
    _lock_nodes(conn, [row.node_id])
    expired = (grants.c.expires_at < now()).label("expired")
    held = conn.execute(sa.select(expired).where(grants.c.id == grant_id).with_for_update()).one_or_none()
    if held is None:
        return False
    same = sa.and_(allocations.c.consumer == row.consumer, allocations.c.migration == row.migration)
    booked = conn.execute(sa.select(allocations.c.id).where(same)).first()
    node = conn.execute(sa.select(compute_nodes.c.id).where(compute_nodes.c.id == row.node_id)).first()
    server = _lock_server(conn, row.consumer)
    if node and not held.expired and not booked and server is not None and not server.deleted:
        return False
    conn.execute(sa.delete(grants).where(grants.c.id == grant_id))
    # Every view looks again.
    conn.execute(sa.update(compute_nodes).where(compute_nodes.c.id == row.node_id).values(updated_at=now()))
    return True


def recount_quota(conn: sa.Connection, project_id: str) -> bool:
    """Set what a project uses to what its servers say, making the row if there is none."""
    used = quotas.lock(conn, project_id)
    sums = (sa.func.count(), *(sa.func.coalesce(sa.func.sum(instances.c[part]), 0) for part in ("vcpus", "memory_mb")))
    mine = sa.and_(instances.c.project_id == project_id, instances.c.deleted == 0)
    count, cores, ram = conn.execute(sa.select(*sums).select_from(instances).where(mine)).one()
    # A server and its move hold the larger of the two sizes.
    more = [sa.func.coalesce(sa.func.sum(migrations.c[name]), 0) for name in ("held_cores", "held_ram")]
    moving = migrations.join(instances, instances.c.uuid == migrations.c.instance_uuid)
    held_cores, held_ram = conn.execute(
        sa.select(*more).select_from(moving).where(mine, migrations.c.open.is_(True))
    ).one()
    cores, ram = cores + held_cores, ram + held_ram
    if (used.instances, used.cores, used.ram) == (count, cores, ram):
        return False
    statement = sa.update(quota_usages).where(quota_usages.c.project_id == project_id)
    conn.execute(statement.values(instances=count, cores=cores, ram=ram, updated_at=now()))
    return True


# -- repairs: addresses


def free_address(conn: sa.Connection, address_id: int) -> bool:
    """Free an address that no living server names; one of a deleted server leaves that server's host first."""
    row = conn.execute(sa.select(addresses).where(addresses.c.id == address_id)).one_or_none()
    if row is None:
        return False
    server = _lock_server(conn, row.instance_uuid)
    mine = addresses.c.id == address_id
    held = conn.execute(sa.select(addresses.c.leaving_since).where(mine).with_for_update()).one_or_none()
    if held is None or held.leaving_since is not None:
        return False
    if server is None:
        return conn.execute(sa.delete(addresses).where(mine)).rowcount > 0
    if server.deleted:
        place = {(server.host, server.node or "")} if server.host else set()
        addresses_db.release(conn, [row.instance_uuid], {row.instance_uuid: place})
        return True
    port = addresses_db.port_of(server.networks)
    if port is not None and int(IPv4Address(port.address)) == row.address:
        return False
    return conn.execute(sa.delete(addresses).where(mine)).rowcount > 0


def book_address(conn: sa.Connection, uuid: str) -> bool:
    """Write down the address that a server has; whatever had it on the books, it has it."""
    server = _lock_server(conn, uuid)
    port = addresses_db.port_of(server.networks) if server is not None and not server.deleted else None
    if port is None:
        return False
    number = int(IPv4Address(port.address))
    if conn.execute(sa.select(addresses.c.id).where(addresses.c.address == number)).first():
        return False
    addresses_db.reserve(conn, uuid, port, number)
    return True


def forget_address_host(conn: sa.Connection, host: str) -> bool:
    """Free the addresses that wait for a host which there is no record of."""
    known = sa.select(compute_nodes.c.id).where(compute_nodes.c.host == host)
    return conn.execute(known).first() is None and addresses_db.forget_host(conn, host) > 0


# -- repairs: operations, and servers that nothing works on


def cancel_operation(conn: sa.Connection, uuid: str) -> bool:
    """End an active operation whose server is gone."""
    operation = operations_db.get(conn, uuid)
    if operation is None:
        return False
    server = _lock_server(conn, operation.instance_uuid)
    if server is not None and not server.deleted:
        return False
    return bool(operations_db.finish(conn, [uuid], operations_db.CANCELLED, "The server is gone."))


def free_operation(conn: sa.Connection, uuid: str) -> bool:
    """Let go of an active operation whose lease ran out, for the next sweep to take up."""
    late = sa.and_(
        operations.c.uuid == uuid,
        operations.c.status == operations_db.ACTIVE,
        operations.c.lease_expires_at < now(),
    )
    values = {"owner": None, "lease_expires_at": now(), "updated_at": operations.c.updated_at}
    return conn.execute(sa.update(operations).where(late).values(**values)).rowcount > 0


def settle_server(conn: sa.Connection, uuid: str) -> bool:
    """Give a server that waits for an operation that is not there a state that it can leave.

    One that was being deleted gets a new delete; one that was being built ends in ERROR, and keeps its host if it has
    one, since a domain may be there; any other is what it was, with nothing being done to it.
    """
    node_id = conn.execute(sa.select(instances.c.node_id).where(instances.c.uuid == uuid)).scalar_one_or_none()
    _lock_nodes(conn, [node_id])
    server = _lock_server(conn, uuid)
    if server is None or server.deleted or server.node_id != node_id or _is_worked_on(conn, uuid):
        return False
    if server.task_state == states.DELETING:
        project, user = server.project_id, "audit"
        operations_db.add(conn, operations_db.DELETE, [uuid], project_id=project, user_id=user, request_id="req-audit")
        return True
    if server.task_state is None and server.vm_state != states.BUILDING:
        return False
    values: dict[str, Any] = {"task_state": None, "updated_at": now()}
    half_unshelved = server.vm_state == states.SHELVED_OFFLOADED and node_id is not None
    if server.vm_state == states.BUILDING or half_unshelved:
        message = "Nothing was building this server any more, as an audit found. Delete it and create it again."
        values |= {"vm_state": states.ERROR, "fault_code": 500, "fault_message": message, "fault_at": now()}
    conn.execute(sa.update(instances).where(instances.c.uuid == uuid).values(**values))
    if node_id is None:
        allocations_db.release(conn, [uuid])
    else:
        _recount(conn, [node_id])
    return True


def _lock_server(conn: sa.Connection, uuid: str) -> sa.Row[Any] | None:
    return conn.execute(sa.select(instances).where(instances.c.uuid == uuid).with_for_update()).one_or_none()


def _is_worked_on(conn: sa.Connection, uuid: str) -> bool:
    mine = sa.and_(operations.c.instance_uuid == uuid, operations.c.status == operations_db.ACTIVE)
    return conn.execute(sa.select(operations.c.id).where(mine)).first() is not None

# SPDX-License-Identifier: Apache-2.0
"""The audit: what in the books contradicts what, told from one snapshot, and what would mend it.

    read one snapshot ──> find (pure) ──> list, count, or repair one by one, each looked at again under its locks

Most contradictions are never seen of a healthy cloud, however busy, since what belongs together is written in one
transaction. A few are, for a moment (``IN_FLIGHT``): each finding knows since when, and of these kinds, what is younger
than a patience is not told.

Nothing is healed by guessing. A row that can only be wrong is mended (a sum, an allocation whose server is deleted); of
two rows that contradict each other, the server's own counts; what runs on a host is never touched, and what needs a
person's decision is told and left. Domains are compared with the servers if the computes can be asked.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from nova_lite.db import addresses as address_rows
from nova_lite.db import audit as rows
from nova_lite.db import grants
from nova_lite.db.audit import Snapshot
from nova_lite.db.session import Database
from nova_lite.objects import instance as states
from nova_lite.objects.group import AFFINITY, ANTI_AFFINITY
from nova_lite.objects.instance import DomainInfo
from nova_lite.objects.resources import Resources

#: Seconds after which what should have ended by itself is a finding.
PATIENCE = 120.0

#: The kinds that a healthy cloud shows for a moment -> what makes them, and what ends them.
IN_FLIGHT: Mapping[str, str] = {
    "grant-of-deleted-server": "A scheduler does not ask whether a server is deleted meanwhile; the claim does.",
    "grant-without-server": "The same, of a server whose row was removed after its delete.",
    "grant-of-placed-server": "A build was taken over and scheduled again while its first message was on its way.",
    "grant-on-unknown-node": "A scheduler removes the grants of a node that is gone when it next looks for them.",
    "grant-expired": "A scheduler removes it when it next looks for them.",
    "operation-stuck": "A conductor takes it over when it next looks for leases that ran out.",
    "domain-of-deleted-server": "Its compute destroys it when it next reports.",
    "domain-elsewhere": "The computes were asked before the server's row was read.",
    "server-without-domain": "The computes were asked before the server's row was read.",
}


# The states in which a server at rest has a domain.
_WITH_DOMAIN = (
    states.ACTIVE,
    states.STOPPED,
    states.PAUSED,
    states.SUSPENDED,
    states.RESCUED,
    states.SHELVED,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One contradiction. since is the database's time of the newest row that takes part in it, or None.

    fix says what --fix would do, None if it is left to a person. key is what the kind's repair is called with.
    """

    kind: str
    subject: str
    sentence: str
    since: datetime.datetime | None
    fix: str | None = None
    key: Any = None


#: kind -> its repair, a function of a transaction's connection and the finding's key; None where a person decides.
REPAIRS: Mapping[str, Callable[[Any, Any], bool] | None] = {
    "node-used": rows.recount_node,
    "node-counters": rows.recount_node,
    "node-overbooked": None,
    "allocation-without-server": rows.remove_allocation,
    "allocation-of-deleted-server": rows.remove_allocation,
    "allocation-of-unplaced-server": rows.remove_allocation,
    "allocation-elsewhere": rows.move_allocation,
    "allocation-size": rows.move_allocation,
    "allocation-group": rows.move_allocation,
    "allocation-of-ended-move": rows.remove_half,
    "allocation-off-the-move": None,
    "move-unbooked": None,
    "move-stuck": rows.end_move,
    "server-unbooked": rows.book_server,
    "server-on-unknown-node": None,
    "server-host-name": rows.name_host,
    "server-stuck": rows.settle_server,
    "grant-without-server": rows.remove_grant,
    "grant-of-deleted-server": rows.remove_grant,
    "grant-expired": rows.remove_grant,
    "grant-on-unknown-node": rows.remove_grant,
    "grant-of-placed-server": rows.remove_grant,
    "group-broken": None,
    "quota-usage": rows.recount_quota,
    "address-without-server": rows.free_address,
    "address-of-deleted-server": rows.free_address,
    "address-unused": rows.free_address,
    "address-of-gone-host": rows.forget_address_host,
    "address-unbooked": rows.book_address,
    "address-doubled": None,
    "operation-without-server": rows.cancel_operation,
    "operation-stuck": rows.free_operation,
    "domain-without-server": None,
    "domain-of-deleted-server": None,
    "domain-elsewhere": None,
    "server-without-domain": None,
}


def find(snapshot: Snapshot) -> list[Finding]:
    """Return all that the snapshot contradicts itself in, without what may still be in flight."""
    found = (
        *_nodes(snapshot),
        *_allocations(snapshot),
        *_moves(snapshot),
        *_servers(snapshot),
        *_grants(snapshot),
        *_groups(snapshot),
        *_quotas(snapshot),
        *_addresses(snapshot),
        *_operations(snapshot),
    )
    return [finding for finding in found if not _is_in_flight(finding, snapshot)]


def _is_in_flight(finding: Finding, snapshot: Snapshot) -> bool:
    return finding.kind in IN_FLIGHT and finding.since is not None and snapshot.is_young(finding.since)


def look(db: Database, patience: float = PATIENCE) -> Snapshot:
    """Read the snapshot to be audited.

    :param patience: seconds; what is younger may be in flight. 0 of a cloud that is at rest: then nothing is.
    """
    return db.read(lambda conn: rows.read(conn, patience))


def counts(db: Database) -> dict[str, int]:
    """Count the findings of each kind, those without any included; for a metric."""
    found = Counter(finding.kind for finding in find(look(db)))
    return {kind: found[kind] for kind in REPAIRS if not kind.startswith("domain") and kind != "server-without-domain"}


def repair(db: Database, finding: Finding) -> bool:
    """Do what the finding's fix says, if it is still called for; returns whether anything was changed."""
    mend = REPAIRS[finding.kind]
    if mend is None or finding.fix is None:
        return False
    return db.write(lambda conn: mend(conn, finding.key))


# -- nodes


def _nodes(snapshot: Snapshot) -> Iterator[Finding]:
    held: dict[int, list[Any]] = defaultdict(list)
    for row in snapshot.allocations:
        held[row.node_id].append(row)
    for node in snapshot.nodes.values():
        booked = _sum(held[node.id])
        used = Resources(node.used_vcpus, node.used_memory_mb, node.used_disk_gb)
        if used != booked:
            said = f"says that {_amounts(used)} are used; its allocations are {_amounts(booked)}"
            fix = "set what is used to the sum of the allocations"
            yield Finding("node-used", node.host, f"Node {node.node} {said}.", node.updated_at, fix, node.id)
        yield from _counters(snapshot, node, held[node.id])
        capacity = _capacity(node)
        if not booked.fits(capacity):
            said = f"has {_amounts(capacity)} to give, and {_amounts(booked)} allocated"
            yield Finding("node-overbooked", node.host, f"Node {node.node} {said}.", node.updated_at)


def _counters(snapshot: Snapshot, node: Any, held: Sequence[Any]) -> Iterator[Finding]:
    servers = [snapshot.servers.get(row.consumer) for row in held]
    building = sum(1 for row in servers if row is not None and not row.deleted and row.vm_state in states.BUILT_ANEW)
    if (node.instances, node.building) == (len(held), building):
        return
    said = (
        f"counts {node.instances} servers of which {node.building} are being built; "
        f"its allocations are {len(held)}, of which {building}"
    )
    fix = "count again"
    yield Finding("node-counters", node.host, f"Node {node.node} {said}.", node.updated_at, fix, node.id)


def _capacity(node: Any) -> Resources:
    values = node._mapping
    return grants.node_books([values[column.name] for column in grants.NODE_BOOKS_COLUMNS]).capacity


def _sum(held: Iterable[Any]) -> Resources:
    total = Resources()
    for row in held:
        total += Resources(row.vcpus, row.memory_mb, row.disk_gb)
    return total


def _amounts(resources: Resources) -> str:
    return f"{resources.vcpus} VCPU, {resources.memory_mb} MiB and {resources.disk_gb} GiB"


# -- allocations


def _allocations(snapshot: Snapshot) -> Iterator[Finding]:
    worked_on = {row.instance_uuid for row in snapshot.operations}
    for row in snapshot.allocations:
        server = snapshot.servers.get(row.consumer)
        where = f"on {_node_name(snapshot, row.node_id)}"
        if server is None:
            said = f"The allocation {where} is of a server that there is no record of."
            kind = "allocation-without-server"
        elif server.deleted:
            said, kind = f"The allocation {where} is of a server that is deleted.", "allocation-of-deleted-server"
        elif row.migration:
            move = snapshot.moves.get(row.migration)
            if move is None or move.instance_uuid != row.consumer:
                said = f"The allocation {where} is for the move {row.migration}, which is over."
                fix = "delete the allocation"
                yield Finding("allocation-of-ended-move", row.consumer, said, row.created_at, fix, row.migration)
            elif row.node_id not in (move.source_node_id, move.dest_node_id):
                said = f"The allocation {where} is for a move from {move.source_compute} to {move.dest_compute}."
                yield Finding("allocation-off-the-move", row.consumer, said, row.created_at)
            continue
        elif server.node_id is None:
            said, kind = f"The allocation {where} is of a server that is on no host.", "allocation-of-unplaced-server"
        else:
            if row.consumer not in worked_on:
                yield from _misplaced(snapshot, row, server)
            continue
        yield Finding(kind, row.consumer, said, row.created_at, "delete the allocation", row.id)


def _misplaced(snapshot: Snapshot, row: Any, server: Any) -> Iterator[Finding]:
    """Compare an allocation with the row of its server, which nothing is done to."""
    if server.node_id not in snapshot.nodes:
        return
    own, asked = _sum([row]), _sum([server])
    if row.node_id != server.node_id:
        there = _node_name(snapshot, server.node_id)
        said = f"The server is on {there}, its allocation on {_node_name(snapshot, row.node_id)}."
        kind, fix = "allocation-elsewhere", f"move the allocation to {there}"
    elif own != asked:
        said = f"The server's flavor has {_amounts(asked)}, its allocation {_amounts(own)}."
        kind, fix = "allocation-size", "set the allocation to the flavor's amounts"
    elif row.group_id != server.group_id:
        said, kind, fix = "The allocation names another group than its server.", "allocation-group", "name the group"
    else:
        return
    yield Finding(kind, row.consumer, said, max(row.created_at, server.updated_at), fix, row.id)


def _node_name(snapshot: Snapshot, node_id: int | None) -> str:
    node = snapshot.nodes.get(node_id) if node_id is not None else None
    return node.host if node is not None else f"node {node_id}, which is gone"


# -- moves

# What a migration is when its move waits for a person or for a host, with nothing working on it.
_WAITING = ("finished", "done")


def _moves(snapshot: Snapshot) -> Iterator[Finding]:
    """Every open move is worked on or waits, and one that waits holds its half."""
    booked = {row.migration for row in snapshot.allocations}
    worked_on = {row.uuid for row in snapshot.operations}
    # A delete ends the move's operation when it is accepted, and the move itself when it is done.
    deleting = {server.uuid for server in snapshot.servers.values() if server.task_state == states.DELETING}
    for row in snapshot.moves.values():
        what = f"The {row.type} of the server from {row.source_compute} to {row.dest_compute or 'anywhere'}"
        if row.status in _WAITING and row.uuid not in booked:
            said = f"{what} is {row.status}, and holds no allocation."
            yield Finding("move-unbooked", row.instance_uuid, said, row.updated_at)
        elif row.status not in _WAITING and row.operation_uuid not in worked_on and row.instance_uuid not in deleting:
            said = f"{what} is {row.status}, and no operation works on it."
            fix = "end it, and give back what it holds; the server stays where its row says"
            yield Finding("move-stuck", row.instance_uuid, said, row.updated_at, fix, row.uuid)


# -- servers


def _servers(snapshot: Snapshot) -> Iterator[Finding]:
    booked = {row.consumer for row in snapshot.allocations if not row.migration}
    worked_on = {row.instance_uuid for row in snapshot.operations}
    for server in snapshot.servers.values():
        if server.deleted:
            continue
        if server.node_id is not None:
            yield from _placed(snapshot, server, server.uuid in booked)
        waiting = server.task_state or (states.BUILDING if server.vm_state == states.BUILDING else None)
        if waiting and server.uuid not in worked_on:
            said = f"The server is {waiting}, and no operation works on it."
            yield Finding("server-stuck", server.uuid, said, server.updated_at, _settling(server), server.uuid)


def _placed(snapshot: Snapshot, server: Any, is_booked: bool) -> Iterator[Finding]:
    node = snapshot.nodes.get(server.node_id)
    if node is None:
        said = f"The server is on node {server.node_id} of {server.host}, which there is no record of."
        yield Finding("server-on-unknown-node", server.uuid, said, server.updated_at)
        return
    if not is_booked:
        said = f"The server is {server.vm_state} on {node.host}, and has no allocation."
        fix = f"write its allocation on {node.host}"
        yield Finding("server-unbooked", server.uuid, said, server.updated_at, fix, server.uuid)
    if (server.host, server.node) != (node.host, node.node):
        said = f"The server names the host {server.host} ({server.node}); its node is {node.host} ({node.node})."
        yield Finding("server-host-name", server.uuid, said, server.updated_at, f"name {node.host}", server.uuid)


def _settling(server: Any) -> str:
    if server.task_state == states.DELETING:
        return "begin its delete again"
    if server.vm_state == states.BUILDING:
        return "set it to ERROR"
    return f"let it be {server.vm_state}, with nothing being done to it"


# -- grants


def _grants(snapshot: Snapshot) -> Iterator[Finding]:
    booked = {(row.consumer, row.migration) for row in snapshot.allocations}
    for row in snapshot.grants:
        server = snapshot.servers.get(row.consumer)
        since = row.created_at
        if row.node_id not in snapshot.nodes:
            kind, said = "grant-on-unknown-node", f"The grant is on node {row.node_id}, which is gone."
        elif server is None:
            kind, said = "grant-without-server", "The grant is of a server that there is no record of."
        elif server.deleted:
            kind, said = "grant-of-deleted-server", "The grant is of a server that is deleted."
            since = max(since, server.deleted_at or since)
        elif (row.consumer, row.migration) in booked:
            kind, said = "grant-of-placed-server", "The grant is of a server that has its allocation."
        elif row.expires_at <= snapshot.at:
            kind, said = "grant-expired", f"The grant expired at {row.expires_at}, and no scheduler removed it."
            since = row.expires_at
        else:
            continue
        where = _node_name(snapshot, row.node_id)
        yield Finding(kind, row.consumer, said, since, f"delete the grant on {where}", row.id)


# -- groups, quotas, operations


def _groups(snapshot: Snapshot) -> Iterator[Finding]:
    members: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    newest: dict[int, datetime.datetime] = {}
    for row in snapshot.allocations:
        # Both places of a member that moves count against anti-affinity; together it is where it is.
        group = snapshot.groups.get(row.group_id)
        if group is not None and not (row.migration and group.policy == AFFINITY):
            members[row.group_id][row.node_id].add(row.consumer)
            newest[row.group_id] = max(row.created_at, newest.get(row.group_id, row.created_at))
    for group_id, by_node in members.items():
        group = snapshot.groups[group_id]
        for node_id, mine in by_node.items():
            if group.policy == ANTI_AFFINITY and len(mine) > group.max_server_per_host:
                here = f"has {len(mine)} members on {_node_name(snapshot, node_id)}: {', '.join(sorted(mine))}"
                yield Finding("group-broken", group.uuid, f"The anti-affinity group {here}.", newest[group_id])
        if group.policy == AFFINITY and len(by_node) > 1:
            there = ", ".join(sorted(_node_name(snapshot, node_id) for node_id in by_node))
            yield Finding("group-broken", group.uuid, f"The affinity group is on {there}.", newest[group_id])


def _quotas(snapshot: Snapshot) -> Iterator[Finding]:
    owned: dict[str, list[Any]] = defaultdict(list)
    for server in snapshot.servers.values():
        if not server.deleted:
            owned[server.project_id].append(server)
    held: dict[str, Resources] = defaultdict(Resources)
    for move in snapshot.moves.values():
        owner = snapshot.servers.get(move.instance_uuid)
        if owner is not None and not owner.deleted:
            held[owner.project_id] += Resources(move.held_cores, move.held_ram)
    for project_id in sorted(owned.keys() | snapshot.quotas.keys()):
        row, mine = snapshot.quotas.get(project_id), owned[project_id]
        said = (row.instances, row.cores, row.ram) if row else (0, 0, 0)
        total = _sum(mine) + held[project_id]
        if said == (len(mine), total.vcpus, total.memory_mb):
            continue
        sentence = (
            f"The quota counts {said[0]} servers, {said[1]} cores and {said[2]} MiB; "
            f"the project has {len(mine)}, {total.vcpus} and {total.memory_mb}."
        )
        since = row.updated_at if row else None
        yield Finding("quota-usage", project_id, sentence, since, "count again", project_id)


def _addresses(snapshot: Snapshot) -> Iterator[Finding]:
    """What is handed out is what servers name, and to one server each."""
    named = {
        server.uuid: port.address
        for server in snapshot.servers.values()
        if not server.deleted and (port := address_rows.port_of(server.networks)) is not None
    }
    booked = {str(IPv4Address(row.address)): row for row in snapshot.addresses}
    for address, row in booked.items():
        yield from _address(snapshot, address, row, named)
    owners: dict[str, list[str]] = defaultdict(list)
    for uuid, address in named.items():
        owners[address].append(uuid)
    for address, uuids in owners.items():
        if len(uuids) > 1 or (address in booked and booked[address].instance_uuid not in uuids):
            others = sorted({*uuids, *([booked[address].instance_uuid] if address in booked else [])})
            said = f"The address {address} is that of several servers: {', '.join(others)}."
            yield Finding("address-doubled", address, said, snapshot.servers[uuids[0]].updated_at)
        elif address not in booked:
            said = f"The server has the address {address}, which the books do not say."
            since = snapshot.servers[uuids[0]].updated_at
            yield Finding("address-unbooked", uuids[0], said, since, "write it down", uuids[0])


def _address(snapshot: Snapshot, address: str, row: Any, named: Mapping[str, str]) -> Iterator[Finding]:
    server = snapshot.servers.get(row.instance_uuid)
    if row.leaving_since is not None:
        known = {node.host for node in snapshot.nodes.values()}
        for host in sorted({place[0] for place in json.loads(row.leaving)} - known):
            said = f"The address {address} of a deleted server waits for host {host}, which there is no record of."
            fix = "wait for it no longer"
            yield Finding("address-of-gone-host", row.instance_uuid, said, row.leaving_since, fix, host)
        return
    if server is None:
        kind, said = "address-without-server", "is of a server that there is no record of"
    elif server.deleted:
        kind, said = "address-of-deleted-server", "is of a server that is deleted"
    elif named.get(row.instance_uuid) != address:
        kind, said = "address-unused", f"is held for a server that has {named.get(row.instance_uuid, 'none')}"
    else:
        return
    yield Finding(kind, row.instance_uuid, f"The address {address} {said}.", row.created_at, "free it", row.id)


def _operations(snapshot: Snapshot) -> Iterator[Finding]:
    for row in snapshot.operations:
        server = snapshot.servers.get(row.instance_uuid)
        what = f"The operation {row.kind} of server {row.instance_uuid}"
        if server is None or server.deleted:
            said = f"{what} is active, and the server is gone."
            yield Finding("operation-without-server", row.uuid, said, row.updated_at, "end it as cancelled", row.uuid)
        elif (ended := row.lease_expires_at) is not None and ended <= snapshot.at:
            said = f"{what} stands at {row.step}; its lease ran out at {ended}. Is a conductor running?"
            yield Finding("operation-stuck", row.uuid, said, ended, "free it for the next sweep", row.uuid)


# -- domains

_NONE: Mapping[str, datetime.datetime] = {}


def find_in_domains(
    snapshot: Snapshot,
    asked: Iterable[str],
    domains: Iterable[DomainInfo],
    deleted: Mapping[str, datetime.datetime] = _NONE,
    at: datetime.datetime | None = None,
) -> list[Finding]:
    """Compare servers with the domains on the hosts that answered; servers that are being worked on are left out.

    :param asked: the hosts whose computes answered; nothing is said of others.
    :param deleted: uuids of servers that are known to be deleted -> when they were.
    :param at: the database's time before the computes were asked, if that was before the snapshot.
    """
    then = dataclasses.replace(snapshot, at=min(at or snapshot.at, snapshot.at))
    found = _domains(snapshot, frozenset(asked), list(domains), deleted)
    return [finding for finding in found if not _is_in_flight(finding, then)]


def _domains(
    snapshot: Snapshot,
    asked: frozenset[str],
    domains: Sequence[DomainInfo],
    deleted: Mapping[str, datetime.datetime],
) -> Iterator[Finding]:
    worked_on = {row.instance_uuid for row in snapshot.operations}
    # The source of a move that waits keeps its domain, switched off.
    worked_on |= {row.instance_uuid for row in snapshot.moves.values()}
    there: dict[str, set[str]] = defaultdict(set)
    for domain in domains:
        there[domain.uuid].add(domain.node)
        server = snapshot.servers.get(domain.uuid)
        if server is None and domain.uuid not in deleted:
            said = f"A domain on {domain.node} has the uuid of no server; look at it, and destroy it there."
            yield Finding("domain-without-server", domain.uuid, said, None)
        elif server is None or server.deleted:
            said = f"A domain on {domain.node} is of a deleted server; its compute destroys it when it next reports."
            since = server.deleted_at if server is not None else deleted[domain.uuid]
            yield Finding("domain-of-deleted-server", domain.uuid, said, since)
        elif server.node != domain.node and domain.uuid not in worked_on:
            said = f"A domain is on {domain.node}, its server on {server.node or 'no host'}."
            yield Finding("domain-elsewhere", domain.uuid, said, server.updated_at)
    for server in snapshot.servers.values():
        at_rest = server.task_state is None and server.vm_state in _WITH_DOMAIN
        if at_rest and not server.deleted and server.host in asked and server.node not in there[server.uuid]:
            said = f"The server is {server.vm_state} on {server.host}, and has no domain there."
            yield Finding("server-without-domain", server.uuid, said, server.updated_at)

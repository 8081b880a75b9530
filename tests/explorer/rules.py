# SPDX-License-Identifier: Apache-2.0
"""The rules that every state of every schedule must keep, and a reading of the books that is not the code's own.

The replay here is the design's sentence written down: walk the grants in the order in which they were written; each
holds if it fits beside what holds before it and keeps its group's rule. It knows nothing of tickets, so that a wrong
order of tickets is seen.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

AFFINITY, ANTI_AFFINITY = "affinity", "anti-affinity"

_QUERIES = {
    "nodes": "SELECT id, host, total_vcpus, used_vcpus, used_memory_mb, instances, building, failed_builds, ticket "
    "FROM compute_nodes ORDER BY id",
    "groups": "SELECT id, policy, max_server_per_host, ticket FROM server_groups ORDER BY id",
    "grants": "SELECT id, consumer, migration, node_id, ticket, group_id, group_ticket, vcpus, "
    "expires_at < strftime('%Y-%m-%d %H:%M:%f', 'now') FROM grants ORDER BY id",
    "allocations": "SELECT consumer, migration, node_id, group_id, vcpus, memory_mb FROM allocations ORDER BY consumer",
    "servers": "SELECT uuid, vm_state, task_state, node_id, deleted FROM instances ORDER BY id",
    "operations": "SELECT uuid, status, step, owner, attempt, arguments, "
    "lease_expires_at < strftime('%Y-%m-%d %H:%M:%f', 'now') FROM operations ORDER BY id",
}


@dataclass
class Request:
    """A server's way through a scheduler, as its user sees it.

    had_no_room: there was a moment since the scheduler began at which the books had no place for it.
    """

    server: str
    size: int
    in_group: bool
    excluded: frozenset[int] = frozenset()
    won: int | None = None
    node: int | None = None
    consumed: bool = False
    told_no: bool = False
    ended: bool = False
    had_no_room: bool = False

    def state(self) -> tuple[Any, ...]:
        return (self.server, self.won, self.node, self.consumed, self.told_no, self.ended, self.had_no_room)


@dataclass
class Books:
    """All tables that matter, as rows."""

    rows: dict[str, list[tuple[Any, ...]]]
    sizes: dict[int, int] = field(default_factory=dict)
    allocated: Counter[int] = field(default_factory=Counter)
    members: Counter[tuple[int, int]] = field(default_factory=Counter)

    @classmethod
    def read(cls, raw: sqlite3.Connection) -> Books:
        factory, raw.row_factory = raw.row_factory, None
        try:
            books = cls({name: raw.execute(query).fetchall() for name, query in _QUERIES.items()})
        finally:
            raw.row_factory = factory
        books.sizes = {row[0]: row[2] for row in books.rows["nodes"]}
        for _consumer, _migration, node, group, size, _memory in books.rows["allocations"]:
            books.allocated[node] += size
            if group is not None:
                books.members[group, node] += 1
        return books

    def state(self) -> list[Any]:
        """Return what decides what can come next. A row's own ticket does not: the next is larger than any."""
        return [[row[:-1] for row in rows] if name in ("nodes", "groups") else rows for name, rows in self.rows.items()]

    def __str__(self) -> str:
        holding = self.holding()
        parts = []
        for node, host, size, used, *_rest in self.rows["nodes"]:
            here = [row[0] for row in self.rows["allocations"] if row[2] == node]
            waiting = [
                f"{row[1]}{'' if row[0] in holding else ' (does not hold)'}{' (expired)' if row[8] else ''}"
                for row in self.rows["grants"]
                if row[3] == node
            ]
            text = f"{host}: {used} of {size} used"
            text += f" by {', '.join(here)}" if here else ""
            text += f", granted to {', '.join(waiting)}" if waiting else ""
            parts.append(text)
        return "; ".join(parts)

    def holding(self, without: str | None = None) -> set[int]:
        """Return the ids of the grants that hold."""
        return self._replay(without)[0]

    def _replay(self, without: str | None) -> tuple[set[int], Counter[int], Counter[tuple[int, int]]]:
        holds: set[int] = set()
        booked, members = Counter(self.allocated), Counter(self.members)
        for number, consumer, _migration, node, _ticket, group, _group_ticket, size, _expired in self.rows["grants"]:
            if consumer != without and self._fits(node, group, size, booked, members):
                holds.add(number)
                booked[node] += size
                if group is not None:
                    members[group, node] += 1
        return holds, booked, members

    def _fits(
        self, node: int, group: int | None, size: int, booked: Counter[int], members: Counter[tuple[int, int]]
    ) -> bool:
        if booked[node] + size > self.sizes.get(node, -1):
            return False
        if group is None:
            return True
        policy, most = next((row[1], row[2]) for row in self.rows["groups"] if row[0] == group)
        if policy == ANTI_AFFINITY:
            return members[group, node] < most
        home = {at for (of, at), count in members.items() if of == group and count}
        return policy != AFFINITY or not home or node in home

    def has_allocation(self, server: str) -> bool:
        return any(row[0] == server for row in self.rows["allocations"])

    def has_room(self, request: Request) -> bool:
        """Tell whether a server that asks now would find a place."""
        _holds, booked, members = self._replay(request.server)
        group = 1 if request.in_group else None
        return any(
            self._fits(node, group, request.size, booked, members)
            for node in self.sizes
            if node not in request.excluded
        )


def watch(requests: Collection[Request], books: Books) -> None:
    """Note for every request under way whether the books have a place for it now."""
    for request in requests:
        if request.won is None and not request.ended and not request.had_no_room:
            request.had_no_room = not books.has_room(request)


def broken_by_a_step(
    before: Books, after: Books, requests: Collection[Request], taker: str, gives_back: bool
) -> str | None:
    """Return the rule that a step broke, if any."""
    found = (
        _sums(after)
        or _capacity(before, after)
        or _groups(after.members, after)
        or _stolen(before, after, requests, taker)
        or _wrong_no(requests)
        or _servers(after)
    )
    if found is None and not gives_back:
        found = _winners(after, requests)
    return found


def broken_at_the_end(after: Books, requests: Collection[Request], gives_back: bool, somebody_died: bool) -> str | None:
    """Return the rule that the books break when all is over, if any."""
    granted = [row[1] for row in after.rows["grants"]]
    if granted and not somebody_died:
        return f"a grant leaked: all have ended, and {', '.join(granted)} still has one"
    if not gives_back:
        for request in requests:
            if request.told_no and after.has_room(request):
                return f'a wrong "no valid host": all have ended, and {request.server} would fit'
    allocated = {row[0] for row in after.rows["allocations"]}
    for uuid, vm_state, task_state, _node, deleted in after.rows["servers"]:
        if deleted and uuid in allocated:
            return f"server {uuid} is deleted and holds an allocation"
        if vm_state == "active" and uuid not in allocated:
            return f"server {uuid} is ACTIVE without an allocation"
        if vm_state == "building" and task_state == "spawning" and uuid not in allocated:
            return f"server {uuid} is left spawning without an allocation"
    for node, host, _size, _used, _memory, _instances, building, *_rest in after.rows["nodes"]:
        spawning = sum(row[1] == "building" and row[3] == node and row[0] in allocated for row in after.rows["servers"])
        if building != spawning:
            return f"{host} counts {building} builds in progress, and has {spawning}"
    return None


def left_out(after: Books, servers: Collection[str]) -> str | None:
    """Return which server has no place when all is over, of a case that has one for each."""
    missing = [each for each in servers if not after.has_allocation(each)]
    return f"{missing[0]} has no place, and there is one for it" if missing else None


def broken_builds(after: Books, domains: Collection[tuple[str, str]], must_have_ended: bool) -> str | None:
    """Return what is wrong with builds when all is over: domains are (server, host)."""
    names = {row[0]: row[1] for row in after.rows["nodes"]}
    allocated = {(row[0], names[row[2]]) for row in after.rows["allocations"]}
    for server, host in domains:
        if (server, host) not in allocated:
            return f"server {server} runs on {host}, and has no allocation there"
    active = [row[0] for row in after.rows["operations"] if row[1] == "active"]
    if must_have_ended and active:
        return f"{active[0]} is left active, and nobody works on it"
    return None


def _sums(books: Books) -> str | None:
    for node, host, _size, used, memory, count, building, *_rest in books.rows["nodes"]:
        mine = [row for row in books.rows["allocations"] if row[2] == node]
        if used != sum(row[4] for row in mine) or memory != sum(row[5] for row in mine):
            return f"the books of {host} are wrong: {used} used, and its allocations are {sum(row[4] for row in mine)}"
        if count != len(mine):
            return f"the books of {host} are wrong: {count} instances, and {len(mine)} allocations"
        if not 0 <= building <= count:
            return f"the books of {host} are wrong: {building} builds in progress of {count} instances"
    purposes = Counter((row[0], row[1]) for row in books.rows["allocations"])
    doubled = [consumer for (consumer, _migration), count in purposes.items() if count > 1]
    return f"{doubled[0]} has two allocations" if doubled else None


def _capacity(before: Books, after: Books) -> str | None:
    """A host that shrank may hold too much, but nothing may be added to it."""
    for node, size in after.sizes.items():
        if after.allocated[node] > max(size, before.allocated[node]):
            host = next(row[1] for row in after.rows["nodes"] if row[0] == node)
            return f"double-booked: {after.allocated[node]} allocated on {host}, which has {size}"
    return None


def _groups(members: Counter[tuple[int, int]], books: Books) -> str | None:
    for group, policy, most, _ticket in books.rows["groups"]:
        nodes = {node: count for (of, node), count in members.items() if of == group and count}
        if policy == ANTI_AFFINITY and any(count > most for count in nodes.values()):
            return "members of the anti-affinity group are on one host"
        if policy == AFFINITY and len(nodes) > 1:
            return "members of the affinity group are on several hosts"
    return None


def _winners(books: Books, requests: Collection[Request]) -> str | None:
    """All that was promised can be kept: allocations and the grants that schedulers answered with, together."""
    promised = {(request.won, request.server) for request in requests}
    booked, members = Counter(books.allocated), Counter(books.members)
    for number, consumer, _migration, node, _ticket, group, _group_ticket, size, _expired in books.rows["grants"]:
        if (number, consumer) in promised:
            booked[node] += size
            if group is not None:
                members[group, node] += 1
    for node, size in books.sizes.items():
        if booked[node] > size:
            host = next(row[1] for row in books.rows["nodes"] if row[0] == node)
            return f"double-booked: {booked[node]} promised or allocated on {host}, which has {size}"
    return _groups(members, books)


def _stolen(before: Books, after: Books, requests: Collection[Request], taker: str) -> str | None:
    """A grant that was answered with goes by its own consumption, its owner, or expiry; nobody takes it away."""
    was = {row[:2]: row for row in before.rows["grants"]}
    gone = was.keys() - {row[:2] for row in after.rows["grants"]}
    allocated = {row[0] for row in after.rows["allocations"]}
    active = {row[0] for row in after.rows["operations"] if row[1] == "active"}
    again = {row[1] for row in after.rows["grants"]}
    for request in requests:
        mine = (request.won, request.server)
        if mine in gone and request.server not in allocated and request.server not in again:
            expired = was[mine][8]
            if not expired and f"op-{request.server}" in active and request.server not in taker.split():
                return f"the grant of {request.server}, which won and had not expired, was taken away by {taker}"
    return None


def _wrong_no(requests: Collection[Request]) -> str | None:
    for request in requests:
        if request.told_no and not request.had_no_room:
            return f'a wrong "no valid host": {request.server} had a place at every moment since it asked'
    return None


def _servers(books: Books) -> str | None:
    """A server on a host has its allocation there, and the reverse."""
    nodes = {row[0]: row[2] for row in books.rows["allocations"]}
    for uuid, _vm_state, _task_state, node, deleted in books.rows["servers"]:
        if not deleted and (node or None) != nodes.get(uuid):
            return f"server {uuid} is on {node}, its allocation on {nodes.get(uuid)}"
    return None

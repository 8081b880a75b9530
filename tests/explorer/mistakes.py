# SPDX-License-Identifier: Apache-2.0
"""The six mistakes that the design warns of, and one of this code's own, each made again for the length of a test.

``made`` changes the code in memory, as the mistake would have been written. ``change`` tells a world where one
transaction is to be two, if the mistake lives between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import sqlalchemy as sa

from nova_lite.db import grants, operations
from nova_lite.db.allocations import _Consume
from nova_lite.db.grants import GrantRequest
from nova_lite.db.models import allocations as allocations_table
from nova_lite.db.models import compute_nodes
from nova_lite.db.models import grants as grants_table
from nova_lite.db.models import instances as instances_table
from nova_lite.objects.ledger import Grant, Ledger, NodeBooks
from nova_lite.scheduler.verdict import Verdict
from tests.explorer import world as world_module
from tests.explorer.cases import CASES
from tests.explorer.world import Case, World


@dataclass(frozen=True)
class Mistake:
    """A wrong protocol, the case that shows it, and a part of the sentence that says so."""

    name: str
    case: Case
    expected: str
    made: Callable[[], AbstractContextManager[object]]
    change: Callable[[World], None] | None = None


def _case(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def _split(label: str, sentence: str, unit: Callable[[World, sa.Connection], None]) -> Callable[[World], None]:
    """Return a change by which a unit is run as a transaction of its own before the one with the label."""

    def change(world: World) -> None:
        def first(conn: sa.Connection) -> None:
            unit(world, conn)

        first.__code__ = first.__code__.replace(co_name=sentence)
        world.splits[label] = [first]
        _current.append(world)
        del _current[:-1]

    return change


#: The world that is being run, for code that is called from within it.
_current: list[World] = []


# -- 1. order by a time that is taken before the row is visible


def _take_time(world: World, _conn: sa.Connection) -> None:
    world.kept["clock"] = world.kept.get("clock", 0) + 1
    world.kept[f"time of {world.acting}"] = world.kept["clock"]


@contextmanager
def order_by_time() -> Iterator[None]:
    """Stamp grants with the database's time, taken as the insert begins, instead of a ticket under the row's lock."""
    real = grants.write

    def write(
        conn: sa.Connection, requests: Sequence[GrantRequest], lifetime: float, replacing: bool = True
    ) -> list[int | None]:
        world = _current[0]
        time = world.kept.pop(f"time of {world.acting}") * 100
        tickets = []
        real(conn, requests, lifetime, replacing)
        for place, request in enumerate(requests):
            mine = grants_table.c.consumer == request.consumer
            conn.execute(sa.update(grants_table).where(mine).values(ticket=time + place, group_ticket=time + place))
            tickets.append(time + place)
        return list(tickets)

    with mock.patch.object(grants, "write", write):
        yield


# -- 2. the sum of the earlier grants, instead of their replay


@contextmanager
def sum_instead_of_replay() -> Iterator[None]:
    """Count every earlier grant, whether it holds or not."""
    real = Verdict._book

    def book(self: Verdict, grant: Grant) -> bool:
        holds = real(self, grant)
        if not holds:
            self._booked[grant.node_id] += grant.amounts
        return holds

    with mock.patch.object(Verdict, "_book", book):
        yield


# -- 3. usage and grants in two snapshots


def _read_usage(world: World, conn: sa.Connection) -> None:
    rows = conn.execute(sa.select(*grants.NODE_BOOKS_COLUMNS))
    world.kept[f"usage read by {world.acting}"] = {row[0]: grants.node_books(row).used for row in rows}


@contextmanager
def two_snapshots() -> Iterator[None]:
    """Read what is used first, and the grants in a transaction after that."""
    real = grants.read_few

    def read_few(conn: sa.Connection, node_ids: Any) -> Ledger | None:
        ledger = real(conn, node_ids)
        used = _current[0].kept.pop(f"usage read by {_current[0].acting}")
        if ledger is None:
            return None
        nodes = {node.id: NodeBooks(node.id, node.capacity, used[node.id]) for node in ledger.nodes.values()}
        return Ledger(nodes, ledger.groups, ledger.grants)

    with mock.patch.object(grants, "read_few", read_few):
        yield


# -- 4. the oldest grant of the right size, instead of one's own


@contextmanager
def consume_by_amounts() -> Iterator[None]:
    """Consume the oldest grant on the node that has the server's size, whoever it was given to."""
    real = _Consume._read_grants

    def read_grants(self: Any) -> None:
        real(self)
        for claim in self._claims:
            size = sa.select(instances_table.c.vcpus).where(instances_table.c.uuid == claim.consumer).scalar_subquery()
            here = sa.and_(grants_table.c.node_id == claim.node_id, grants_table.c.vcpus == size)
            row = self._conn.execute(sa.select(grants_table).where(here).order_by(grants_table.c.ticket)).first()
            self._grants.pop(claim.grant_id, None)
            if row is not None:
                as_mine = {**row._mapping, "consumer": claim.consumer, "migration": claim.migration, "live": True}
                self._grants[claim.grant_id] = SimpleNamespace(**as_mine)

    with mock.patch.object(_Consume, "_read_grants", read_grants):
        yield


# -- 5. clearing all grants that are older than the node's last


@contextmanager
def clear_older_grants() -> Iterator[None]:
    """Take it that whatever is older than the grant consumed last will never come."""
    real = _Consume._write_nodes

    def write_nodes(self: Any) -> None:
        real(self)
        for _claim, grant in self._granted:
            older = sa.and_(grants_table.c.node_id == grant.node_id, grants_table.c.ticket < grant.ticket)
            self._conn.execute(sa.delete(grants_table).where(older))

    with mock.patch.object(_Consume, "_write_nodes", write_nodes):
        yield


# -- 6. a conflict is retried inside the transaction that lost it


def _take_snapshot(world: World, conn: sa.Connection) -> None:
    rows = conn.execute(sa.select(*grants.NODE_BOOKS_COLUMNS))
    world.kept[f"snapshot of {world.acting}"] = {row[0]: grants.node_books(row).used for row in rows}


@contextmanager
def retry_inside() -> Iterator[None]:
    """Check again, after a conflict, what the transaction's own old snapshot shows; then add to what is used now."""
    lock_nodes, write_nodes = _Consume._lock_nodes, _Consume._write_nodes

    def lock(self: Any) -> None:
        lock_nodes(self)
        snapshot = _current[0].kept.pop(f"snapshot of {_current[0].acting}")
        self._booked = {node_id: snapshot[node_id] for node_id in self._booked}

    def write(self: Any) -> None:
        write_nodes(self)
        for part in ("vcpus", "memory_mb", "disk_gb"):
            mine = allocations_table.c.node_id == compute_nodes.c.id
            now = sa.select(sa.func.coalesce(sa.func.sum(allocations_table.c[part]), 0)).where(mine)
            self._conn.execute(sa.update(compute_nodes).values({f"used_{part}": now.scalar_subquery()}))

    with mock.patch.object(_Consume, "_lock_nodes", lock), mock.patch.object(_Consume, "_write_nodes", write):
        yield


# -- 7. an answer that comes after the lease was lost


def late_answers_decide() -> AbstractContextManager[object]:
    """Let a conductor end a build that another one has taken over meanwhile."""
    return mock.patch.object(operations, "is_held", lambda _conn, _operation, _owner: True)


MISTAKES = [
    Mistake(
        "order by the database's time, taken before the row is visible",
        _case("one place for two"),
        "double-booked",
        order_by_time,
        _split("grants.write", "takes_the_time", _take_time),
    ),
    Mistake(
        "the sum of the earlier grants, instead of their replay",
        _case("a large loser in flight"),
        'a wrong "no valid host"',
        sum_instead_of_replay,
    ),
    Mistake(
        "usage and grants read in two snapshots",
        _case("one place for two"),
        "double-booked",
        two_snapshots,
        _split("grants.read_few", "reads_the_usage", _read_usage),
    ),
    Mistake(
        "consume the oldest grant of this size, instead of one's own",
        _case("room for two"),
        "was taken away",
        consume_by_amounts,
    ),
    Mistake(
        "clear all grants that are older than the one consumed last",
        _case("room for two"),
        "was taken away",
        clear_older_grants,
    ),
    Mistake(
        "retry a conflict inside the transaction that lost it",
        _case("an earlier grant disappears"),
        "double-booked",
        retry_inside,
        _split("allocations.consume", "takes_its_snapshot", _take_snapshot),
    ),
    Mistake(
        "let an answer decide that comes after the lease was lost",
        _case("a lease is lost"),
        "and has no allocation there",
        late_answers_decide,
    ),
]

world_module.SENTENCES |= {
    "takes_the_time": "takes the database's time for its grant",
    "reads_the_usage": "reads what is used",
    "takes_its_snapshot": "begins to consume, and so takes its snapshot",
}

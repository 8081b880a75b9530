# SPDX-License-Identifier: Apache-2.0
"""The ledger of moves under any sequence of what can happen to them, against a plain model of what must be held.

Servers that run are resized and migrated between three nodes, with and without a group; moves finish, are confirmed,
reverted and undone; servers are deleted in the middle; nodes shrink and return. The model knows each server's size,
its node, and what its move holds beside it; allocations, quota, groups and the audit must show just that.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nova_lite import audit
from nova_lite.db import actions, allocations, builds, instances, models, moves, operations, registry, turns
from nova_lite.objects import move as steps
from nova_lite.objects.build import BuildOutcome, Claim
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.instance import ACTIVE, RUNNING
from nova_lite.objects.node import NodeInventory
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.resources import Resources
from nova_lite.scheduler.placer import Placer
from tests.functional.test_protocol_properties import GROUPS, LIFETIME, OPTIONS, Database1

APART = GROUPS[1]
NODES = (1, 2, 3)
WHICH = st.integers(0, 11)


@dataclass
class Server:
    """phase is rest, moving (the half is on the way's end) or moved (it is where the server was)."""

    name: str
    size: int
    node: int
    grouped: bool
    phase: str = "rest"
    half: tuple[int, int] | None = None  # node, size
    old: int = 0
    new: int = 0
    operation: str = ""


def flavor(size: int) -> Flavor:
    return Flavor(f"f{size}", f"f{size}", size, size, 0)


class MovesLedger(RuleBasedStateMachine):
    """Rules pick a server by a number."""

    def __init__(self) -> None:
        super().__init__()
        self.db = Database1(OPTIONS)
        models.metadata.create_all(self.db.engine)
        self.placer = Placer(OPTIONS, self.db, 1)
        self.known: dict[str, Server] = {}
        self.sizes: dict[int, int] = {}
        self.numbers = itertools.count(1)

    def teardown(self) -> None:
        self.db.close()

    @initialize(sizes=st.tuples(*[st.integers(4, 8)] * 3))
    def begin(self, sizes: tuple[int, ...]) -> None:
        for number, size in zip(NODES, sizes, strict=True):
            self._report(number, size)
        values = {"uuid": APART.uuid, "project_id": "p", "user_id": "u", "name": "g", "policy": APART.policy}
        self.db.write(lambda conn: conn.execute(sa.insert(models.server_groups).values(id=APART.id, **values)))
        for size, grouped in ((1, True), (2, False), (2, True)):
            self._boot(size, grouped)

    def _report(self, number: int, size: int) -> None:
        host = f"h{number}"

        def write(conn: sa.Connection) -> None:
            service = registry.register_service(conn, registry.COMPUTE, host, host)
            amounts = Resources(size, size, size)
            registry.register_node(conn, service, NodeInventory(f"node-{host}", host, host, amounts))

        self.db.write(write)
        self.sizes[number] = size

    def _caller(self) -> instances.Caller:
        return instances.Caller("p", "u", f"req-{next(self.numbers)}")

    def _pick(self, which: int, *phases: str) -> Server | None:
        found = [server for server in self.known.values() if server.phase in phases]
        return found[which % len(found)] if found else None

    # -- what is done

    @rule(size=st.integers(1, 2), grouped=st.booleans())
    def boot(self, size: int, grouped: bool) -> None:
        self._boot(size, grouped)

    def _boot(self, size: int, grouped: bool) -> None:
        """Boot a server and see it ACTIVE, or told that there is no place."""
        name = f"s{next(self.numbers)}"
        group_id = APART.id if grouped else None
        new = instances.NewInstances([name], [name], [name], flavor(size), None, "r", group_id=group_id)
        made = self.db.write(lambda conn: instances.create(conn, OPTIONS, new, self._caller()))
        spec = RequestSpec(name, "p", Resources(size, size), flavor(size), group=APART if grouped else None)
        answer = self.placer.place([spec])[0]
        room = [node for node in NODES if self._fits(name, size, grouped, node)]
        assert (answer.node_id in room) if room else (answer.grant_id is None), answer
        if answer.grant_id is None:
            build = self._build(made.operations[0])
            self.db.write(lambda conn: builds.fail(conn, build, "no place"))
            self._delete(name)
            return
        claim = Claim(made.operations[0], name, answer.grant_id, answer.node_id or 0, "h")
        assert self.db.write(lambda conn: allocations.consume(conn, [claim], LIFETIME))[0].granted
        outcome = BuildOutcome(made.operations[0], name, answer.host or "", True, RUNNING)
        assert self.db.write(lambda conn: builds.complete(conn, [outcome])) == [name]
        self.known[name] = Server(name, size, answer.node_id or 0, grouped)

    def _build(self, operation: str) -> builds.Build:
        return self.db.read(lambda conn: builds.gather(conn, operations.get_many(conn, [operation])))[0]

    @rule(which=WHICH, size=st.integers(1, 3), stays=st.booleans(), finishes=st.booleans())
    def move(self, which: int, size: int, stays: bool, finishes: bool) -> None:
        """Resize a server (to its own size, it is migrated), to another node or on its own; to the claim, or on."""
        server = self._pick(which, "rest")
        if server is None or (stays and size == server.size):
            return
        kind = operations.MIGRATE if size == server.size else operations.RESIZE
        wanted = None if size == server.size else flavor(size)
        operation = self.db.write(
            lambda conn: moves.begin(
                conn, OPTIONS, server.name, kind=kind, caller=self._caller(), vm_states=(ACTIVE,), flavor=wanted
            )
        )
        server.operation, server.old, server.new = operation, server.size, size
        extra = max(0, size - server.size) if stays else size
        here = f"h{server.node}"
        spec = RequestSpec(
            server.name,
            "p",
            Resources(extra, extra),
            flavor(size),
            migration=self._move(server).migration.uuid,
            group=APART if server.grouped else None,
            requested_host=here if stays else None,
            excluded_hosts=() if stays else (here,),
        )
        answer = self.placer.place([spec])[0]
        others = [server.node] if stays else [node for node in NODES if node != server.node]
        room = [node for node in others if self._fits(server.name, extra, server.grouped, node)]
        assert (answer.node_id in room) if room else (answer.grant_id is None), answer
        if answer.grant_id is None:
            self._end(server, lambda conn, move: turns.undo(conn, move, "error", "no place"))
            return
        move = self._move(server)
        assert self.db.write(lambda conn: turns.note_placed(conn, move, answer, steps.PREPARE, "c", LIFETIME, "event"))
        claim = Claim(
            operation, server.name, answer.grant_id, answer.node_id or 0, "h", move.migration.uuid, steps.PREPARE
        )
        assert self.db.write(lambda conn: allocations.consume(conn, [claim], LIFETIME))[0].granted
        server.phase, server.half = "moving", (answer.node_id or 0, extra)
        if finishes:
            self._finish(server)

    @rule(which=WHICH)
    def finish(self, which: int) -> None:
        server = self._pick(which, "moving")
        if server is not None:
            self._finish(server)

    def _finish(self, server: Server) -> None:
        assert server.half is not None
        self._end(server, lambda conn, move: turns.finish_resize(conn, move, RUNNING, None))
        there, source = server.half[0], server.node
        left = max(0, server.old - server.new) if there == source else server.old
        server.node, server.size, server.half, server.phase = there, server.new, (source, left), "moved"

    @rule(which=WHICH)
    def undo(self, which: int) -> None:
        server = self._pick(which, "moving")
        if server is not None:
            self._end(server, lambda conn, move: turns.undo(conn, move, "error", "it failed"))
            server.phase, server.half = "rest", None

    @rule(which=WHICH, confirmed=st.booleans())
    def confirm_or_revert(self, which: int, confirmed: bool) -> None:
        server = self._pick(which, "moved")
        if server is None or server.half is None:
            return
        kind = operations.CONFIRM if confirmed else operations.REVERT
        server.operation = self.db.write(lambda conn: moves.end(conn, server.name, kind=kind, caller=self._caller()))
        if confirmed:
            self._end(server, turns.confirm)
        else:
            self._end(server, lambda conn, move: turns.revert(conn, move, RUNNING))
            server.node, server.size = server.half[0], server.old
        server.phase, server.half = "rest", None

    @rule(which=WHICH)
    def delete(self, which: int) -> None:
        server = self._pick(which, "rest", "moving", "moved")
        if server is not None:
            self._delete(server.name)
            del self.known[server.name]

    def _delete(self, name: str) -> None:
        made = self.db.write(lambda conn: instances.begin_delete(conn, name, self._caller()))
        assert self.db.write(lambda conn: actions.finish_deletes(conn, operations.get_many(conn, [made]))) == [name]

    @rule(number=st.sampled_from(NODES), size=st.integers(2, 8))
    def host_changes(self, number: int, size: int) -> None:
        self._report(number, size)

    def _move(self, server: Server) -> moves.Move:
        found = self.db.read(lambda conn: moves.gather(conn, operations.get_many(conn, [server.operation])))
        return found[0]

    def _end(self, server: Server, turn: Any) -> None:
        """Take a turn; taken again, as after a message that came twice, it does nothing."""
        move = self._move(server)
        assert self.db.write(lambda conn: turn(conn, move))
        assert not self.db.write(lambda conn: turn(conn, move))

    # -- the model

    def _held(self) -> dict[int, int]:
        held: dict[int, int] = defaultdict(int)
        for server in self.known.values():
            held[server.node] += server.size
            if server.half:
                held[server.half[0]] += server.half[1]
        return held

    def _fits(self, name: str, size: int, grouped: bool, node: int) -> bool:
        if self._held()[node] + size > self.sizes[node]:
            return False
        members = (server for server in self.known.values() if server.grouped and server.name != name)
        return not grouped or all(node not in self._places(server) for server in members)

    @staticmethod
    def _places(server: Server) -> set[int]:
        return {server.node} | ({server.half[0]} if server.half else set())

    @invariant()
    def the_ledger_holds_what_the_model_holds(self) -> None:
        found = self.db.read(lambda conn: conn.execute(sa.select(models.allocations)).all())
        held = {(row.consumer, bool(row.migration)): (row.node_id, row.vcpus) for row in found}
        wanted: dict[tuple[str, bool], tuple[int, int]] = {}
        for server in self.known.values():
            wanted[server.name, False] = (server.node, server.size)
            if server.half:
                wanted[server.name, True] = server.half
        assert held == wanted

    @invariant()
    def a_server_and_its_move_hold_the_quota_of_the_larger_size(self) -> None:
        statement = sa.select(models.quota_usages.c.cores)
        cores = self.db.read(lambda conn: conn.execute(statement).scalar()) or 0
        larger = (max(s.old, s.new) if s.half else s.size for s in self.known.values())
        assert cores == sum(larger)

    @invariant()
    def an_audit_finds_nothing_but_hosts_that_shrank(self) -> None:
        held = self._held()
        shrunk = {f"h{node}" for node, size in self.sizes.items() if held[node] > size}
        found = audit.find(audit.look(self.db))
        assert {(finding.kind, finding.subject) for finding in found} == {("node-overbooked", host) for host in shrunk}


MovesLedger.TestCase.settings = settings(
    max_examples=20, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
test_the_ledger_of_moves_is_what_its_model_says = MovesLedger.TestCase

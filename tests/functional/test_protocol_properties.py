# SPDX-License-Identifier: Apache-2.0
"""The ledger under any sequence of what can happen to it, against a plain model of what must be true.

The explorer tries every order of a few steps; this tries long histories: boots with and without groups, deletes,
failed builds, hosts that shrink and return, time that passes, messages that come late or twice. The model is a few
dicts; after each step the books must show what it shows.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

import hypothesis.strategies as st
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from oslo_config import cfg
from oslo_db.sqlalchemy import exc_filters

from nova_lite import audit, conf
from nova_lite.db import actions, allocations, builds, grants, instances, models, operations, registry
from nova_lite.db.session import Database
from nova_lite.objects.build import BuildOutcome, Claim
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.group import AFFINITY, ANTI_AFFINITY, Group
from nova_lite.objects.instance import RUNNING
from nova_lite.objects.node import NodeInventory
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.resources import Resources
from nova_lite.scheduler.placer import Placer

LIFETIME = 80_000.0
STATES = ("waiting", "granted", "booked")
WHICH, WHO = st.integers(0, 11), st.integers(0, 1)
CALLER = instances.Caller("p", "u", "req")
GROUPS = {1: Group(1, "apart", ANTI_AFFINITY, 1), 2: Group(2, "together", AFFINITY, 1)}


@dataclass
class Server:
    """What the model knows: waiting, granted (to a node), booked (on a node), or gone."""

    name: str
    operation: str
    size: int
    group: Group | None
    state: str = "waiting"
    node: int | None = None
    active: bool = False


class Database1(Database):
    """One connection in memory: a history is short, and there are many of them."""

    def _engine(self, isolation: str, begin: str) -> sa.Engine:
        engine: sa.Engine | None = getattr(self, "_shared", None)
        if engine is None:
            engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
            exc_filters.register_engine(engine)
            self._shared = engine
        return engine


def _options() -> cfg.ConfigOpts:
    options = cfg.ConfigOpts()
    conf.register(options)
    options([], default_config_files=[], default_config_dirs=[])
    options.set_override("connection", "sqlite://", group="database")
    options.set_override("grant_lifetime", LIFETIME, group="scheduler")
    options.set_override("instances", -1, group="quota")
    options.set_override("cores", -1, group="quota")
    options.set_override("ram", -1, group="quota")
    return options


OPTIONS = _options()


class Ledger(RuleBasedStateMachine):
    """Histories; ``letters`` are the build messages that may still come. Rules pick a server by a number."""

    letters = Bundle("letters")

    def __init__(self) -> None:
        super().__init__()
        self.db = Database1(OPTIONS)
        models.metadata.create_all(self.db.engine)
        self.placers = [Placer(OPTIONS, self.db, seed) for seed in (1, 2)]
        self.known: dict[str, Server] = {}
        self.sizes: dict[int, int] = {}
        self.numbers = itertools.count(1)

    def teardown(self) -> None:
        self.db.close()

    @initialize(sizes=st.lists(st.integers(1, 2), min_size=2, max_size=2))
    def begin(self, sizes: list[int]) -> None:
        for number, size in enumerate(sizes, start=1):
            self._report(number, size)

        def write(conn: sa.Connection) -> None:
            for group in GROUPS.values():
                values = {"uuid": group.uuid, "project_id": "p", "user_id": "u", "name": "g", "policy": group.policy}
                conn.execute(sa.insert(models.server_groups).values(**values))

        self.db.write(write)

    def _report(self, number: int, size: int) -> None:
        host = f"h{number}"

        def write(conn: sa.Connection) -> None:
            service = registry.register_service(conn, registry.COMPUTE, host, host)
            registry.register_node(
                conn, service, NodeInventory(f"node-{host}", host, host, Resources(size, size, size))
            )

        self.db.write(write)
        self.sizes[number] = size

    # -- what users do

    def _living(self, which: int, *allowed: str) -> Server | None:
        found = [server for server in self.known.values() if server.state in (allowed or STATES)]
        return found[which % len(found)] if found else None

    @rule(target=letters, who=WHO, size=st.integers(1, 2), group=st.sampled_from([None, None, *GROUPS.values()]))
    def boot(self, size: int, group: Group | None, who: int) -> Claim | None:
        name = f"s{next(self.numbers)}"
        flavor = Flavor("f", "f", size, size, 0)
        new = instances.NewInstances([name], [name], [name], flavor, None, "r", group_id=group.id if group else None)
        made = self.db.write(lambda conn: instances.create(conn, OPTIONS, new, CALLER))
        self.known[name] = Server(name, made.operations[0], size, group)
        return self._place(self.known[name], who)

    @rule(which=WHICH)
    def delete(self, which: int) -> None:
        server = self._living(which)
        if server is None:
            return
        made = self.db.write(lambda conn: instances.begin_delete(conn, server.name, CALLER))
        self.db.write(lambda conn: actions.finish_deletes(conn, operations.get_many(conn, [made])))
        server.state, server.node = "gone", None

    # -- what schedulers do

    @rule(target=letters, which=WHICH, who=WHO)
    def place_again(self, which: int, who: int) -> Claim | None:
        """Schedule a server that waits, or whose message was lost; the older grant is replaced."""
        server = self._living(which, "waiting", "granted")
        return self._place(server, who) if server else None

    def _place(self, server: Server, who: int) -> Claim | None:
        room = self._has_room(server)
        flavor = Flavor("f", "f", server.size, server.size, 0)
        spec = RequestSpec(server.name, "p", Resources(server.size, server.size), flavor, group=server.group)
        answer = self.placers[who].place([spec])[0]
        assert (answer.grant_id is not None) == room, answer
        if answer.grant_id is None:
            return None
        server.state, server.node = "granted", answer.node_id
        return Claim(server.operation, server.name, answer.grant_id, answer.node_id or 0, answer.host or "")

    @rule()
    def time_passes(self) -> None:
        """Let every grant expire, and the reaper come."""

        def late(conn: sa.Connection) -> None:
            conn.execute(sa.text("UPDATE grants SET expires_at = '2000-01-01 00:00:00.000000'"))

        self.db.write(late)
        self.db.write(grants.expire)
        for server in self.known.values():
            if server.state == "granted":
                server.state, server.node = "waiting", None

    # -- what computes do

    @rule(letter=letters)
    def deliver(self, letter: Claim | None) -> None:
        """Consume: the message may be old, or have come before."""
        if letter is not None:
            self._consume(letter)

    @rule(letter=consumes(letters))
    def deliver_last(self, letter: Claim | None) -> None:
        if letter is not None:
            self._consume(letter)

    def _consume(self, letter: Claim) -> None:
        server = self.known[letter.consumer]
        live = self._grant_id(server.name)
        outcome = self.db.write(lambda conn: allocations.consume(conn, [letter], LIFETIME))[0]
        if server.state == "booked":
            assert outcome.granted == (letter.node_id == server.node and not server.active), outcome
        elif server.state == "granted" and letter.grant_id == live:
            # Its host may have shrunk since; then, and only then, it is refused.
            fits = self._used(letter.node_id) + server.size <= self.sizes[letter.node_id]
            assert outcome.granted == fits, outcome
            server.state, server.node = ("booked", letter.node_id) if fits else ("waiting", None)
        else:
            assert not outcome.granted, outcome

    @rule(which=WHICH)
    def build_succeeds(self, which: int) -> None:
        server = self._living(which, "booked")
        if server and not server.active:
            outcome = BuildOutcome(server.operation, server.name, f"h{server.node}", True, RUNNING)
            assert self.db.write(lambda conn: builds.complete(conn, [outcome])) == [server.name]
            server.active = True

    @rule(which=WHICH)
    def build_fails(self, which: int) -> None:
        server = self._living(which, "booked")
        if server and not server.active:
            outcome = BuildOutcome(server.operation, server.name, f"h{server.node}", False, reason="no")
            build = self.db.read(lambda conn: builds.gather(conn, operations.get_many(conn, [server.operation])))[0]
            assert self.db.write(lambda conn: builds.retry_elsewhere(conn, build, outcome))
            server.state, server.node = "waiting", None

    @rule(number=st.integers(1, 2), size=st.integers(0, 2))
    def host_returns(self, number: int, size: int) -> None:
        """Report a host with another size, as after a change of its memory."""
        self._report(number, size)

    # -- the model

    def _used(self, node: int) -> int:
        return sum(s.size for s in self.known.values() if s.state == "booked" and s.node == node)

    def _grant_id(self, name: str) -> int | None:
        mine = sa.select(models.grants.c.id).where(models.grants.c.consumer == name)
        return self.db.read(lambda conn: conn.execute(mine).scalar_one_or_none())

    def _has_room(self, server: Server) -> bool:
        """Replay by hand: allocations first, then grants in the order that they were written."""
        statement = sa.select(models.grants.c.consumer, models.grants.c.node_id).order_by(models.grants.c.id)
        granted = self.db.read(lambda conn: conn.execute(statement).all())
        placed = [(s, s.node or 0) for s in self.known.values() if s.state == "booked"]
        for consumer, node in granted:
            if consumer != server.name and self._fits(self.known[consumer], node, placed):
                placed.append((self.known[consumer], node))
        return any(self._fits(server, node, placed) for node in self.sizes)

    def _fits(self, server: Server, node: int, placed: list[tuple[Server, int]]) -> bool:
        used = sum(each.size for each, where in placed if where == node)
        if used + server.size > self.sizes[node]:
            return False
        members = {where for each, where in placed if server.group and each.group is server.group}
        if server.group is GROUPS[1]:
            return node not in members
        return server.group is None or not members or node in members

    @invariant()
    def books_are_the_model(self) -> None:
        statement = sa.select(models.allocations.c.consumer, models.allocations.c.node_id)
        held = dict(self.db.read(lambda conn: conn.execute(statement).all()))
        assert held == {s.name: s.node for s in self.known.values() if s.state == "booked"}
        waiting = set(self.db.read(lambda conn: conn.execute(sa.select(models.grants.c.consumer)).scalars().all()))
        assert waiting == {s.name for s in self.known.values() if s.state == "granted"}

    @invariant()
    def groups_hold(self) -> None:
        apart = Counter(s.node for s in self.known.values() if s.state == "booked" and s.group is GROUPS[1])
        assert all(count == 1 for count in apart.values())
        assert len({s.node for s in self.known.values() if s.state == "booked" and s.group is GROUPS[2]}) <= 1

    @invariant()
    def an_audit_finds_nothing_but_hosts_that_shrank(self) -> None:
        shrunk = {f"h{node}" for node, size in self.sizes.items() if self._used(node) > size}
        found = audit.find(audit.look(self.db))
        assert {(finding.kind, finding.subject) for finding in found} == {("node-overbooked", host) for host in shrunk}


Ledger.TestCase.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
test_the_ledger_is_what_its_model_says = Ledger.TestCase

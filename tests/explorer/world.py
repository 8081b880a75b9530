# SPDX-License-Identifier: Apache-2.0
"""One run of a case: a database in memory, actors that stop before each transaction, and what is known of them.

A ``Lab`` is what all runs share, because making it takes long: configuration, engine, plug-ins, the books that a case
begins with. A ``World`` is one run. Its actors are greenlets, which are threads that switch only where they are told
to: one at a time takes a step, from the transaction before which it stood to the next one, or to its end. (Real
threads would do the same, and spend most of their time on waiting to be woken.)
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, Literal
from unittest import mock

import greenlet
import sqlalchemy as sa
from oslo_config import cfg
from oslo_db.sqlalchemy import exc_filters

from nova_lite import conf
from nova_lite.db import instances, models, registry
from nova_lite.db.models import server_groups
from nova_lite.db.session import Database
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.group import Group
from nova_lite.objects.node import NodeInventory
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.resources import Resources
from nova_lite.objects.selection import Selection
from nova_lite.scheduler import placer as placer_module
from nova_lite.scheduler.placer import Placer
from tests.explorer import memory, rules
from tests.explorer.rules import Books, Request

LONG = 80_000.0

SENTENCES = {
    "_look": "looks at the hosts",
    "read": "finds no host, and reads everything afresh before it says so",
    "writes": "writes a grant, and is not heard of again",
    "time_passes": "... time passes",
    "register": "reports a new size",
    "grants.write": "writes grants",
    "grants.read_few": "rereads",
    "grants.read_ledger": "rereads",
    "grants.remove": "removes its lost grants",
    "grants.expire": "deletes expired grants",
    "allocations.consume": "consumes",
    "builds.gather": "reads the builds",
    "builds.note_placed": "notes that the builds are placed",
    "builds.schedule_again": "lets the build be scheduled again",
    "builds.fail": "ends the build in ERROR",
    "builds.complete": "publishes the server as ACTIVE",
    "builds.retry_elsewhere": "gives the place back to build elsewhere",
    "builds.count_failure": "counts the failure against the host",
    "operations.claim_abandoned": "takes over what was abandoned",
    "operations.claim": "claims the operation",
    "operations.get_many": "reads its operation",
    "operations.finish": "ends the operation",
    "operations.overdue": "asks which builds take too long",
    "leases_run_out": "... the leases run out",
    "registry.compute_servers": "asks which computes are up",
    "finish_delete": "frees the books of the deleted server",
    "begin_delete": "accepts a delete",
}


@dataclass(frozen=True)
class Host:
    """A host of a case. name is one word, size its virtual CPUs."""

    name: str
    size: int


@dataclass(frozen=True)
class Server:
    """A server of a case, asked for but not placed; its name is its uuid."""

    name: str
    size: int = 1
    group: str | None = None


@dataclass(frozen=True)
class Case:
    """Books, and the actors that work on them.

    actors adds them to a world. looked: all schedulers have their first look before
    anything else happens, so that their views are as old as can be; that saves most of the states of large cases.
    picks: which of hosts that are equally good a scheduler picks: "any", which tries them all; all of them the "same",
    so that they meet wherever they can; or each its own, so that they are "apart".
    deaths is how many actors may die, each before any of its steps but the first. gives_back tells whether places
    become free in the case, by expiry, deletes or failures: then a "no" may be outdated at the end, and two grants may
    hold until one of them is consumed. ends: every operation must have ended at the end. all_placed: every server must
    have its place at the end.
    """

    name: str
    story: str
    hosts: Sequence[Host]
    servers: Sequence[Server]
    actors: Callable[[World], None]
    policy: str | None = None
    most: int = 1
    looked: bool = False
    picks: Literal["any", "same", "apart"] = "any"
    deaths: int = 0
    gives_back: bool = False
    ends: bool = False
    all_placed: bool = False
    daily: bool = False


class SteppedDatabase(Database):
    """The real database layer on one connection in memory, which stops the calling actor before each transaction."""

    def __init__(self, options: cfg.ConfigOpts) -> None:
        self._shared: sa.Engine | None = None
        self.world: World | None = None
        super().__init__(options)

    def _engine(self, isolation: str, begin: str) -> sa.Engine:
        if self._shared is None:
            arguments = {"check_same_thread": False}
            self._shared = sa.create_engine("sqlite://", poolclass=sa.StaticPool, connect_args=arguments)

            @sa.event.listens_for(self._shared, "connect")
            def _connect(connection: Any, _record: Any) -> None:
                connection.isolation_level = None
                self.raw = connection

            @sa.event.listens_for(self._shared, "begin")
            def _begin(conn: sa.Connection) -> None:
                conn.exec_driver_sql("BEGIN")

            exc_filters.register_engine(self._shared)
        return self._shared

    def _run(self, engine: sa.Engine, unit: Any) -> Any:
        if self.world is None:
            return super()._run(engine, unit)
        label = _label(unit)
        for first in self.world.splits.get(label, ()):
            self._step(engine, first, _label(first))
        return self._step(engine, unit, label)

    def _step(self, engine: sa.Engine, unit: Any, label: str) -> Any:
        world = self.world
        assert world is not None
        if label not in world.unseen:
            world.arrive(label)
        return super()._run(engine, unit)


def _label(unit: Any) -> str:
    """Name a unit: module.function of the database layer where it is one, else the function's own name."""
    unit = getattr(unit, "func", unit)
    code = unit.__code__
    if code.co_name != "<lambda>":
        module = unit.__module__.rpartition(".")[2]
        in_db = unit.__module__.startswith("nova_lite.db")
        return f"{module}.{code.co_name}" if in_db else str(code.co_name)
    names = code.co_names
    if names and isinstance(unit.__globals__.get(names[0]), ModuleType):
        return ".".join(names[:2])
    return str(names[0]) if names else str(unit.__qualname__)


class Lab:
    """What all runs share."""

    def __init__(self) -> None:
        self.conf = cfg.ConfigOpts()
        conf.register(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.conf.set_override("connection", "sqlite://", group="database")
        self.conf.set_override("grant_lifetime", LONG, group="scheduler")
        # Whatever host has room may be picked: the search tries them all.
        self.conf.set_override("near_equal", 1e12, group="scheduler")
        self.conf.set_override("view_reload_interval", LONG, group="scheduler")
        self.conf.set_override("liveness_interval", 600.0, group="scheduler")
        self.conf.set_override("view_overlap", 600.0, group="scheduler")
        self.db = SteppedDatabase(self.conf)
        models.metadata.create_all(self.db.engine)
        self._empty = self.db.raw.serialize()
        self._plugins: dict[tuple[str, ...], list[type]] = {}
        self._load = placer_module._plugins

    def plugins(self, namespace: str, names: Sequence[str]) -> list[type]:
        """Load filters or weighers once, not once a placer."""
        key = (namespace, *names)
        if key not in self._plugins:
            self._plugins[key] = self._load(namespace, names)
        return self._plugins[key]

    @contextmanager
    def books_of(self, case: Case) -> Iterator[None]:
        """Write what the case begins with, and bring it back for each run."""
        self.db.raw.deserialize(self._empty)
        self.db.write(lambda conn: self._write(conn, case))
        self._initial = self.db.raw.serialize()
        placer_module._plugins = self.plugins  # type: ignore[assignment]
        try:
            yield
        finally:
            placer_module._plugins = self._load

    def rewind(self) -> None:
        self.db.raw.deserialize(self._initial)

    def _write(self, conn: sa.Connection, case: Case) -> None:
        for host in case.hosts:
            register(conn, host)
        if case.policy:
            conn.execute(
                sa.insert(server_groups).values(
                    uuid="group",
                    project_id="p",
                    user_id="u",
                    name="g",
                    policy=case.policy,
                    max_server_per_host=case.most,
                )
            )
        for server in case.servers:
            self.accept(conn, server)
        # Nobody's heartbeat grows old while the search goes on.
        conn.execute(sa.text("UPDATE services SET last_seen_at = '2999-01-01 00:00:00.000000'"))

    def accept(self, conn: sa.Connection, server: Server) -> None:
        """Write a server that waits to be scheduled, as the API does, and its operation "op-NAME"."""
        new = instances.NewInstances(
            [server.name], [server.name], [server.name], flavor(server), None, "r", group_id=1 if server.group else None
        )
        caller = instances.Caller("p", "u", "req")
        made = instances.create(conn, self.conf, new, caller)
        conn.execute(
            sa.text("UPDATE operations SET uuid = :to, owner = 'conductor', lease_expires_at = :end WHERE uuid = :was"),
            {"to": f"op-{server.name}", "was": made.operations[0], "end": "2999-01-01 00:00:00.000000"},
        )


def flavor(server: Server) -> Flavor:
    return Flavor("f", "f", server.size, server.size, 0)


def register(conn: sa.Connection, host: Host) -> None:
    """Report a host as its compute does."""
    service = registry.register_service(conn, registry.COMPUTE, host.name, host.name)
    total = Resources(host.size, host.size, host.size)
    registry.register_node(conn, service, NodeInventory(f"node-{host.name}", host.name, host.name, total))


@dataclass
class Actor:
    """One strand of a run, and where it stands."""

    name: str
    body: Callable[[], object]
    mortal: bool
    label: str = ""
    ready: Callable[[], bool] | None = None
    steps: int = 0
    ended: bool = False
    dead: bool = False
    crash: BaseException | None = None
    memory: Any = None
    fiber: Any = None

    @property
    def stands(self) -> bool:
        return not (self.ended or self.dead)


class World:
    """One run of a case."""

    def __init__(self, lab: Lab, case: Case, choose: Callable[[int], int], telling: bool) -> None:
        self.lab, self.case, self.choose = lab, case, choose
        self.conf, self.db = lab.conf, lab.db
        self.actors: list[Actor] = []
        #: label of a unit -> units that are run before it, as steps of their own: how a mistake is written.
        self.splits: dict[str, list[Any]] = {}
        #: labels before which actors do not stop.
        self.unseen: set[str] = set()
        self.requests: dict[str, Request] = {}
        self.mail: dict[str, list[Any]] = {}
        #: whatever else a case or a mistake keeps outside of the database; part of the state.
        self.kept: dict[str, Any] = {}
        self._current: Actor | None = None
        self._story: list[str] = []
        self._notes: list[str] = []
        self._deaths = case.deaths
        self._taker: Actor | None = None
        self._telling = telling

    # -- actors, from the outside

    def add(self, name: str, body: Callable[[], object], mortal: bool = True) -> None:
        """Add an actor. mortal ones may die, if the case has deaths."""
        self.actors.append(Actor(name, body, mortal))

    def start(self) -> None:
        """Bring every actor to its first transaction."""
        self.lab.rewind()
        self.db.world = self
        self._before = Books.read(self.db.raw)
        self.case.actors(self)
        self._tell("At first")
        self.unseen = {"_look"} if self.case.looked else set()
        for actor in self.actors:
            actor.fiber = greenlet.greenlet(self._live)
            self._let_go(actor, actor)
        self.unseen = set()

    def _live(self, actor: Actor) -> None:
        try:
            actor.body()
        except Exception as error:  # noqa: BLE001 - whatever it is, the search tells it
            actor.crash = error
        actor.ended = True

    def _let_go(self, actor: Actor, *arguments: Any) -> None:
        """Run an actor up to its next transaction, or to its end."""
        self._current = actor
        actor.fiber.switch(*arguments)
        self._current = None

    def options(self) -> list[tuple[str, Actor]]:
        """Return what may happen next."""
        able = [actor for actor in self.actors if actor.stands and (actor.ready is None or actor.ready())]
        # Whoever took the last step comes first: stories with few turns are found first.
        able.sort(key=lambda actor: actor is not self._taker)
        steps = [("steps", actor) for actor in able]
        if not self._deaths:
            return steps
        return steps + [("dies", actor) for actor in self.actors if actor.stands and actor.mortal and actor.steps]

    def take(self, option: tuple[str, Actor]) -> None:
        """Let it happen."""
        what, actor = option
        self._before = self._now()
        if what == "dies":
            actor.dead = True
            self._deaths -= 1
            self._tell(f"{actor.name} dies, before it {self._sentence(actor.label)}")
            return
        self._taker, label = actor, actor.label
        actor.steps += 1
        self._let_go(actor)
        self._books = None
        rules.watch(self.requests.values(), self._now())
        self._tell(f"{actor.name} {self._sentence(label)}")

    def abandon(self) -> None:
        """End all actors where they stand."""
        self.db.world = None
        for actor in self.actors:
            if actor.fiber is not None and not actor.fiber.dead:
                actor.fiber.throw()

    # -- actors, from the inside

    def arrive(self, label: str, ready: Callable[[], bool] | None = None) -> None:
        """Stop the calling actor until the search lets it go on; not before it is ready."""
        actor = self._acting()
        actor.label, actor.ready = label, ready
        actor.memory = memory.of_frames(sys._getframe(1))
        actor.fiber.parent.switch()

    @property
    def acting(self) -> str:
        """The name of the actor whose step it is."""
        return self._acting().name

    def _acting(self) -> Actor:
        assert self._current is not None
        return self._current

    def pick(self, count: int) -> int:
        """Choose for the calling actor, in every way that the case allows."""
        if self.case.picks == "any":
            return self.choose(count)
        return self.actors.index(self._acting()) % count if self.case.picks == "apart" else 0

    def wait_until(self, label: str, ready: Callable[[], bool]) -> None:
        """Make the calling actor wait for something that others do; then it takes a step of its own."""
        self.arrive(label, ready)

    def note(self, text: str) -> None:
        """Add a remark to the story's current step."""
        self._notes.append(text)

    # -- what actors use

    def placer(self) -> Placer:
        """Make the placer of a scheduler, whose picks are the search's."""
        with mock.patch.object(placer_module, "random", SimpleNamespace(Random=lambda _seed: _Picks(self))):
            return Placer(self.conf, self.db)

    def spec(self, name: str) -> RequestSpec:
        server = self.server(name)
        group = Group(1, "group", self.case.policy or "", self.case.most) if server.group else None
        return RequestSpec(name, "p", Resources(server.size, server.size), flavor(server), group=group)

    def server(self, name: str) -> Server:
        return next(server for server in self.case.servers if server.name == name)

    def asked(self, names: Sequence[str], excluded: frozenset[int] = frozenset()) -> None:
        """Note that a scheduler begins with these servers."""
        for name in names:
            server = self.server(name)
            self.requests[name] = Request(name, server.size, bool(server.group), excluded)
        rules.watch(self.requests.values(), self._now())

    def answered(self, answers: Sequence[Selection]) -> None:
        """Note what the scheduler said."""
        for answer in answers:
            request = self.requests[answer.consumer]
            if answer.grant_id is not None:
                request.won = answer.grant_id
                request.node = answer.node_id
                self.note(f"{answer.consumer} won {answer.host}")
            elif answer.superseded:
                request.ended = True
                self.note(f"{answer.consumer} was scheduled by another meanwhile")
            else:
                # Of one that another has placed meanwhile, this decides nothing, and its user is not told.
                request.told_no = not Books.read(self.db.raw).has_allocation(answer.consumer)
                request.ended = True
                self.note(f"{answer.consumer} is told: {answer.reason}")

    # -- state and story

    _books: Books | None = None

    def _now(self) -> Books:
        if self._books is None:
            self._books = Books.read(self.db.raw)
        return self._books

    def key(self) -> bytes:
        """Return what tells this state from others: tables, and each actor's place and memory."""
        places = [
            (actor.name, actor.dead, actor.ended, *((actor.label, actor.memory) if actor.stands else ()))
            for actor in self.actors
        ]
        known = sorted(request.state() for request in self.requests.values())
        outside = [memory.frozen(self.mail), memory.frozen(self.kept)]
        return _digest(places, self._now().state(), self._deaths, known, outside)

    def broken(self) -> str | None:
        """Return the rule that the last step broke."""
        for actor in self.actors:
            if actor.crash is not None:
                return f"{actor.name} crashed: {type(actor.crash).__name__}: {str(actor.crash).splitlines()[0]}"
        requests = self.requests.values()
        taker = self._taker.name if self._taker else ""
        return rules.broken_by_a_step(self._before, self._now(), requests, taker, self.case.gives_back)

    def broken_at_the_end(self) -> str | None:
        """Return the rule that does not hold now that nobody has anything left to do."""
        dead = [actor.name for actor in self.actors if actor.dead]
        found = rules.broken_at_the_end(self._now(), self.requests.values(), self.case.gives_back, bool(dead))
        if found is None and self.case.all_placed:
            found = rules.left_out(self._now(), [server.name for server in self.case.servers])
        return found or rules.broken_builds(self._now(), self.kept.get("domains", {}), self.case.ends)

    def story(self) -> list[str]:
        return self._story

    def _tell(self, sentence: str) -> None:
        if not self._telling:
            return
        after = self._now()
        notes = f" ({'; '.join(self._notes)})" if self._notes else ""
        self._notes.clear()
        books = "" if self._story and after.rows == self._before.rows else f"\n        {after}"
        number = f"{len(self._story):4d}.  " if self._story else ""
        self._story.append(f"{number}{sentence}{notes}{books}")

    def _sentence(self, label: str) -> str:
        return SENTENCES.get(label, label)


class _Picks:
    """Stands in for a placer's random numbers."""

    def __init__(self, world: World) -> None:
        self._world = world

    def randrange(self, count: int) -> int:
        return self._world.pick(count)


def _digest(*parts: Any) -> bytes:
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).digest()

# SPDX-License-Identifier: Apache-2.0
"""The cases: small clouds in which something can go wrong, and the actors that try."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace

import sqlalchemy as sa

from nova_lite.conductor.tasks import Tools
from nova_lite.conductor.tasks.build import BuildTask
from nova_lite.db import actions, allocations, grants, instances, operations
from nova_lite.db.grants import GrantRequest
from nova_lite.objects.build import BuildOutcome, BuildRequest, Claim
from nova_lite.objects.instance import RUNNING
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.resources import Resources
from nova_lite.objects.selection import Selection
from tests.explorer.world import LONG, Case, Host, Server, World, register

Actors = Callable[[World], None]


def boot(world: World, names: Sequence[str]) -> None:
    """Place servers as a scheduler does, and consume their grants as their computes do, until all is decided."""
    placer = world.placer()
    waiting = names
    while waiting:
        world.asked(waiting)
        answers = placer.place([world.spec(name) for name in waiting])
        world.answered(answers)
        claims = [
            Claim(f"op-{answer.consumer}", answer.consumer, answer.grant_id, answer.node_id or 0, answer.host or "")
            for answer in answers
            if answer.grant_id is not None
        ]
        for claim in claims:
            world.mail[claim.consumer] = [claim]
        waiting = [claim.consumer for claim in claims if not consume(world, claim)]


def consume(world: World, claim: Claim) -> bool:
    """Deliver a message: its grant is consumed. A server that is deleted counts as done."""
    outcome = world.db.write(lambda conn: allocations.consume(conn, [claim], LONG))[0]
    world.note(f"{claim.consumer}: {'granted' if outcome.granted else 'refused, ' + outcome.reason}")
    world.requests[claim.consumer].consumed = outcome.granted
    return outcome.granted or outcome.reason in ("the server is deleted", "the operation has ended")


def scheduler(world: World, name: str, servers: Sequence[str]) -> None:
    """Add a scheduler that has these servers to place, and their computes."""
    world.add(f"scheduler {name} of {' '.join(servers)}", lambda: boot(world, servers))


def schedulers(*batches: str) -> Actors:
    """Add one scheduler for each batch, which is a line of servers' names."""

    def actors(world: World) -> None:
        for name, batch in zip("ABC", batches, strict=False):
            scheduler(world, name, batch.split())

    return actors


def together(*parts: Actors) -> Actors:
    def actors(world: World) -> None:
        for part in parts:
            part(world)

    return actors


def time_passes_for(*servers: str) -> Callable[[sa.Connection], None]:
    def time_passes(conn: sa.Connection) -> None:
        late = "UPDATE grants SET expires_at = '2000-01-01 00:00:00.000000' WHERE consumer = :server"
        conn.execute(sa.text(late), [{"server": server} for server in servers])

    return time_passes


def reaper(*servers: str) -> Actors:
    """Add time, which passes once, at any moment, for the grants of these servers, and the reaper that then comes."""

    def actors(world: World) -> None:
        def body() -> None:
            world.db.write(time_passes_for(*servers))
            world.db.write(grants.expire)

        world.add("the reaper", body, mortal=False)

    return actors


def successor(world: World) -> None:
    """Add the scheduler that gets what one that died had not finished."""

    def body() -> None:
        world.wait_until("notices", lambda: any(actor.dead for actor in world.actors))
        dead = next(actor for actor in world.actors if actor.dead)
        names = [name for name in dead.name.split() if name in world.requests]
        boot(world, [name for name in names if not world.requests[name].consumed])

    world.add("the successor", body, mortal=False)


def second_delivery(server: str) -> Actors:
    """Add a broker that delivers a build message once more, at any later moment."""

    def actors(world: World) -> None:
        def body() -> None:
            world.wait_until("has kept the message", lambda: server in world.mail)
            consume(world, world.mail[server][0])

        world.add(f"the second delivery of {server}", body)

    return actors


def deleter(server: str) -> Actors:
    """Add a user who deletes a server, and a conductor that does it."""
    named = f"delete-{server}"

    def begin_delete(conn: sa.Connection) -> None:
        made = instances.begin_delete(conn, server, instances.Caller("p", "u", "delete"))
        # A uuid by chance would make every state a new one.
        conn.execute(sa.text("UPDATE operations SET uuid = :named WHERE uuid = :made"), {"named": named, "made": made})

    def finish_delete(conn: sa.Connection) -> None:
        actions.finish_deletes(conn, operations.get_many(conn, [named]))

    def actors(world: World) -> None:
        def body() -> None:
            world.db.write(begin_delete)
            world.db.write(finish_delete)

        world.add(f"the deleter of {server}", body)

    return actors


def shrinks(host: Host) -> Actors:
    """Add a host that reports a new size."""

    def actors(world: World) -> None:
        world.add(f"host {host.name}", lambda: world.db.write(lambda conn: register(conn, host)))

    return actors


def abandoned_grant(server: str) -> Actors:
    """Add a scheduler that writes a grant on the first host and is not heard of again, until the grant is reaped."""

    def actors(world: World) -> None:
        def writes(conn: sa.Connection) -> None:
            grants.write(conn, [GrantRequest(server, "", 1, Resources(1, 1))], LONG)

        def body() -> None:
            world.db.write(writes)
            world.db.write(time_passes_for(server))
            world.db.write(grants.expire)

        world.add(f"the late scheduler of {server}", body)

    return actors


class Conductor:
    """A conductor with its real build task; its scheduler is a placer beside it, its messages go to ``world.mail``."""

    def __init__(self, world: World, owner: str) -> None:
        self._world = world
        self._placer = world.placer()
        leases = SimpleNamespace(owner=owner, seconds=LONG, let_go=lambda _uuids: None)
        tools = Tools(world.conf, world.db, leases, self, self, self.hint)  # type: ignore[arg-type]
        self.owner, self.task = owner, BuildTask(tools)

    def select_destinations(self, _context: object, specs: Sequence[RequestSpec]) -> list[Selection]:
        self._world.asked([spec.consumer for spec in specs])
        answers = self._placer.place(specs)
        self._world.answered(answers)
        return answers

    def build(self, _context: object, server: str, requests: Sequence[BuildRequest]) -> None:
        self._world.mail.setdefault(server, []).extend(requests)

    def hint(self, operations_hinted: Sequence[str]) -> None:
        self._world.mail.setdefault("hints", []).extend(operations_hinted)

    def serve_hints(self) -> None:
        """Claim and drive what is hinted at, for ever."""
        hints = self._world.mail.setdefault("hints", [])
        while True:
            self._world.wait_until("hears of a build", lambda: bool(hints))
            hinted = [hints.pop(0)]
            claimed = self._world.db.write(partial(operations.claim, uuids=hinted, owner=self.owner, lease=LONG))
            self.task.drive(claimed)


def first_conductor(server: str) -> Actors:
    """Add the conductor that holds the operation of a server from the beginning."""

    def actors(world: World) -> None:
        def body() -> None:
            own = Conductor(world, "conductor")
            own.task.drive(world.db.read(partial(operations.get_many, uuids=[f"op-{server}"])))

        world.add(f"the first conductor of {server}", body)

    return actors


def second_conductor(world: World) -> None:
    """Add a conductor that takes operations over when their leases run out, once, and then hears all hints."""

    def leases_run_out(conn: sa.Connection) -> None:
        conn.execute(sa.text("UPDATE operations SET lease_expires_at = '2000-01-01 00:00:00.000000'"))

    def body() -> None:
        own = Conductor(world, "second")
        world.db.write(leases_run_out)
        own.task.drive(world.db.write(partial(operations.claim_abandoned, owner=own.owner, lease=LONG, limit=9)))
        own.serve_hints()

    world.add("the second conductor", body, mortal=False)


def hinted_conductor(world: World) -> None:
    """Add a conductor that hears hints."""
    world.add("the hinted conductor", lambda: Conductor(world, "hinted").serve_hints(), mortal=False)


def compute(host: str, fails: bool = False, reports: int = 1) -> Actors:
    """Add a compute that builds what it is told to, and reports each outcome so many times.

    :param fails: whether its builds fail.
    """

    def actors(world: World) -> None:
        def body() -> None:
            task = Conductor(world, f"for {host}").task
            letters = world.mail.setdefault(host, [])
            while True:
                world.wait_until("hears of a build", lambda: bool(letters))
                request = letters.pop(0)
                server = request.instance.uuid
                claim = Claim(request.operation, server, request.grant_id, request.node_id, host)
                if task.consume([claim])[0].granted:
                    if not fails:
                        world.kept.setdefault("domains", {})[server, host] = True
                    for _time in range(reports):
                        task.finish([BuildOutcome(request.operation, server, host, not fails, RUNNING, "it failed")])

        world.add(f"the compute {host}", body, mortal=False)

    return actors


PLACEMENT = [
    Case(
        "one place for two",
        "Two schedulers want the only place there is.",
        [Host("h1", 1)],
        [Server("a"), Server("b")],
        schedulers("a", "b"),
        daily=True,
    ),
    Case(
        "room for two",
        "Two schedulers, and room for both on one host.",
        [Host("h1", 2)],
        [Server("a"), Server("b")],
        schedulers("a", "b"),
        daily=True,
    ),
    Case(
        "a large loser in flight",
        "A large request that has lost must not push out a small one that fits.",
        [Host("h1", 2)],
        [Server("a"), Server("b", 2), Server("c")],
        schedulers("a", "b", "c"),
        looked=True,
    ),
    Case(
        "two places for two",
        "Losers fall over to the other host.",
        [Host("h1", 1), Host("h2", 1)],
        [Server("a"), Server("b")],
        schedulers("a", "b"),
    ),
    Case(
        "a batch against a request",
        "Two servers in one batch and one in another, on two hosts of one place each.",
        [Host("h1", 1), Host("h2", 1)],
        [Server("a"), Server("b"), Server("c")],
        schedulers("a b", "c"),
        looked=True,
    ),
]

GROUPS = [
    Case(
        "anti-affinity, two members",
        "Two members and two hosts, each with room for both.",
        [Host("h1", 2), Host("h2", 2)],
        [Server("a", group="g"), Server("b", group="g")],
        schedulers("a", "b"),
        policy="anti-affinity",
        looked=True,
        daily=True,
    ),
    Case(
        "anti-affinity, three members",
        "Three boots and three hosts: each must get a host of its own, even if all want the same one every time.",
        [Host("h1", 3), Host("h2", 3), Host("h3", 3)],
        [Server("a", group="g"), Server("b", group="g"), Server("c", group="g")],
        schedulers("a", "b", "c"),
        policy="anti-affinity",
        looked=True,
        picks="same",
        all_placed=True,
    ),
    Case(
        "anti-affinity, two members and one",
        "Two members in one batch and one in another, on three hosts, whichever of them they pick.",
        [Host("h1", 3), Host("h2", 3), Host("h3", 3)],
        [Server("a", group="g"), Server("b", group="g"), Server("c", group="g")],
        schedulers("a b", "c"),
        policy="anti-affinity",
        looked=True,
        all_placed=True,
    ),
    Case(
        "anti-affinity, too many members",
        "Two members and one host: one of them must be told no, and truly.",
        [Host("h1", 2)],
        [Server("a", group="g"), Server("b", group="g")],
        schedulers("a", "b"),
        policy="anti-affinity",
    ),
    Case(
        "affinity, two members",
        "Two members and two hosts with room for both: they must end up on one of them.",
        [Host("h1", 2), Host("h2", 2)],
        [Server("a", group="g"), Server("b", group="g")],
        schedulers("a", "b"),
        policy="affinity",
        looked=True,
        daily=True,
    ),
    Case(
        "affinity, three members",
        "Three schedulers, and two hosts with room for all: they must end up on one of them.",
        [Host("h1", 3), Host("h2", 3)],
        [Server("a", group="g"), Server("b", group="g"), Server("c", group="g")],
        schedulers("a", "b", "c"),
        policy="affinity",
        looked=True,
        picks="apart",
        all_placed=True,
    ),
    Case(
        "affinity, a home too small",
        "Whichever member comes first on the small host leaves no room there for the other.",
        [Host("h1", 1), Host("h2", 2)],
        [Server("a", group="g"), Server("b", group="g")],
        schedulers("a", "b"),
        policy="affinity",
        looked=True,
    ),
]

ENDINGS = [
    Case(
        "a grant expires on its way",
        "Time passes at any moment, and the reaper comes at any moment after.",
        [Host("h1", 1)],
        [Server("a"), Server("b")],
        together(schedulers("a", "b"), reaper("a")),
        gives_back=True,
        looked=True,
    ),
    Case(
        "an earlier grant disappears",
        "A dead scheduler's grant is reaped under the verdicts of others: two may hold, and one is booked.",
        [Host("h1", 2)],
        [Server("b", 2), Server("c"), Server("d")],
        together(schedulers("b", "c"), abandoned_grant("d")),
        gives_back=True,
        looked=True,
        daily=True,
    ),
    Case(
        "a scheduler dies",
        "Before any of its steps; another one takes over what it had not finished.",
        [Host("h1", 1)],
        [Server("a"), Server("b")],
        together(schedulers("a", "b"), successor),
        deaths=1,
        gives_back=True,
        looked=True,
    ),
    Case(
        "a message comes twice",
        "The build message of one server is delivered again, at any moment.",
        [Host("h1", 2)],
        [Server("a"), Server("b")],
        together(schedulers("a", "b"), second_delivery("a")),
        looked=True,
        daily=True,
    ),
    Case(
        "a delete at any moment",
        "The server is deleted while it is placed; another wants its place.",
        [Host("h1", 1)],
        [Server("a"), Server("b")],
        together(schedulers("a", "b"), deleter("a")),
        gives_back=True,
        looked=True,
    ),
    Case(
        "a host shrinks",
        "Its report comes at any moment between placing and consuming.",
        [Host("h1", 2)],
        [Server("a"), Server("b")],
        together(schedulers("a", "b"), shrinks(Host("h1", 1))),
        gives_back=True,
        looked=True,
    ),
]

BUILDS = [
    Case(
        "a build is placed twice on one host",
        "Taken over and placed again where its first message is just consumed: its second grant must not outlive that.",
        [Host("h1", 2)],
        [Server("a")],
        together(first_conductor("a"), second_conductor, compute("h1"), compute("h1")),
        gives_back=True,
        ends=True,
    ),
    Case(
        "a lease is lost",
        "A second conductor takes a build over while the first one still schedules it.",
        [Host("h1", 1)],
        [Server("a")],
        together(first_conductor("a"), second_conductor, compute("h1")),
        gives_back=True,
        ends=True,
    ),
    Case(
        "a lease is lost between two hosts",
        "The two conductors may choose different hosts; one of them builds.",
        [Host("h1", 1), Host("h2", 1)],
        [Server("a")],
        together(first_conductor("a"), second_conductor, compute("h1"), compute("h2")),
        gives_back=True,
        looked=True,
        ends=True,
    ),
    Case(
        "a failure is reported twice",
        "One host fails and says so twice; meanwhile the other one may already build.",
        [Host("h1", 1), Host("h2", 1)],
        [Server("a")],
        together(first_conductor("a"), hinted_conductor, compute("h1", fails=True, reports=2), compute("h2")),
        gives_back=True,
        ends=True,
        daily=True,
    ),
]

CASES = [*PLACEMENT, *GROUPS, *ENDINGS, *BUILDS]

# SPDX-License-Identifier: Apache-2.0
"""storm: creates and deletes of mixed sizes and groups in a full cloud, and whether a promise was broken.

Client processes keep asking for more than fits, so that many are told "no valid host". At random moments the audit
(``nova-lite-manage audit``) is made, and so it is at the end, when nothing may be in flight any more. Afterwards the
history of all servers, which the database keeps, is judged:

    double booking     at some moment, servers that were ACTIVE on a host exceeded its capacity
    refused winner     a grant that had won did not fit when it was consumed; a few may, see _refused_winners
    broken group       two members of an anti-affinity group were on one host, or of an affinity group on two, at once
    wrong "no"         a server was refused although one host had room for it, and its group allowed it, during the
                       whole time from its acceptance to the refusal; what may have held a place counts as holding it
    leak               after all servers are deleted, something is still booked, granted, counted or running
"""

from __future__ import annotations

import argparse
import datetime
import multiprocessing
import random
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from nova_lite import audit
from nova_lite.db.models import allocations, compute_nodes, grants, instances, operations, quota_usages, server_groups
from nova_lite.db.session import Database
from nova_lite.objects.group import AFFINITY, ANTI_AFFINITY
from nova_lite.objects.resources import Resources
from tests.fixtures.books import disagreements
from tests.fixtures.cloud import Cloud
from tools.benchmarks.compute_api import Api
from tools.benchmarks.figures import Figure, Result
from tools.benchmarks.infrastructure import Infrastructure, cloud
from tools.benchmarks.placement import options_of

SIZES = {"one": (1, 512, 1), "two": (2, 1024, 2), "four": (4, 2048, 4)}
HOST_VCPUS = 4
# Seconds for which a message may be on its way: so long the audit takes for in flight what is written for it.
_PATIENCE = 10.0
# A place counts as free only so long after the delete that freed it began to be written.
_COMMIT_TIME = datetime.timedelta(seconds=0.5)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--hosts", type=int, default=10, help="hosts of 4 VCPUs each (default: 10)")
    parser.add_argument("--schedulers", type=int, default=3, help="scheduler processes (default: 3)")
    parser.add_argument("--conductors", type=int, default=2, help="conductor processes (default: 2)")
    parser.add_argument("--clients", type=int, default=2, help="client processes (default: 2)")
    parser.add_argument("--users", type=int, default=20, help="servers that each client has or wants (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the clients' dice (default: 1)")


def run(options: argparse.Namespace, infrastructure: Infrastructure) -> list[Result]:
    host = {"vcpus": str(HOST_VCPUS), "memory_mb": "65536", "disk_gb": "1000", "hosts": f"host[1-{options.hosts}]"}
    with cloud(infrastructure, {"fake": host, "compute": {"cpu_allocation_ratio": "1"}}) as made:
        made.start_all(schedulers=options.schedulers, conductors=options.conductors)
        watch = _Watch(made)
        asked = _let_them_ask(options, made)
        looks, wrong = watch.stop()
        leaks = _leaks(made)
        history = History(made)
        refused = _refused_winners(made)
    figures = [
        Figure("creates", asked["create"]),
        Figure("creates per second", asked["create"] / options.seconds, "/s"),
        Figure("ACTIVE", asked["ACTIVE"]),
        Figure("told no", asked["ERROR"]),
        Figure("refused or stuck requests", asked["failed"], at_most=0),
        Figure("looks at the books", looks),
        Figure("contradictions in the books", len(wrong), at_most=0),
        Figure("double bookings", history.report("double booking", history.double_bookings()), at_most=0),
        Figure("broken groups", history.report("broken group", history.broken_groups()), at_most=0),
        Figure("winners refused by the claim", refused, at_most=max(1, asked["create"] // 200)),
        Figure("refusals judged", len(history.refused)),
        Figure('wrong "no"', history.report('wrong "no"', history.wrong_refusals()), at_most=0),
        Figure("leaks", len(leaks), at_most=0),
    ]
    for sentence in [*wrong, *leaks]:
        print(f"  ! {sentence}")
    settings = {
        name: getattr(options, name)
        for name in ("seconds", "hosts", "schedulers", "conductors", "clients", "users", "seed")
    }
    return [Result("storm", settings, figures)]


class _Watch:
    """Looks at the books at random moments."""

    def __init__(self, made: Cloud) -> None:
        self._url = made.database
        self._database = Database(options_of(made.config))
        self._stopping = threading.Event()
        self._looks = 0
        self._wrong: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> tuple[int, list[str]]:
        """Return how often it has looked, and what was wrong."""
        self._stopping.set()
        self._thread.join()
        self._database.close()
        return self._looks, self._wrong

    def _run(self) -> None:
        while not self._stopping.wait(random.uniform(0.1, 1.5)):
            self._wrong += _contradictions(self._database, self._url, _PATIENCE)
            self._looks += 1


def _contradictions(database: Database, url: str, patience: float) -> list[str]:
    """Return what the audit finds, and what those find who ask more of servers that are being worked on."""
    found = audit.find(audit.look(database, patience))
    said = [f"{finding.kind} {finding.subject}: {finding.sentence} Since {finding.since}." for finding in found]
    return said + disagreements(url, patience)


# -- asking


def _let_them_ask(options: argparse.Namespace, made: Cloud) -> Counter[str]:
    """Run the client processes; return what they counted."""
    client = made.client()
    flavors = [client.flavor(name, *size) for name, size in SIZES.items()]
    image = client.image()
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = []
    for number in range(options.clients):
        wishes = _Wishes(flavors, image, options.seconds, options.users, options.seed * 1000 + number)
        arguments = (results, made.port, client.headers, wishes, number)
        processes.append(context.Process(target=_client, args=arguments, daemon=True))
        processes[-1].start()
    asked: Counter[str] = Counter()
    for _process in processes:
        asked += results.get(timeout=options.seconds + 300)
    for process in processes:
        process.join(20)
    return asked


@dataclass(frozen=True)
class _Wishes:
    """flavors are weighted by their order: each is asked for half as often as the one before."""

    flavors: list[str]
    image: str
    seconds: float
    users: int
    seed: int


def _client(results: Any, port: int, headers: dict[str, str], wishes: _Wishes, number: int) -> None:
    results.put(_Client(Api(port, headers), wishes, number).run())


class _Client:
    """Users who each want a server, keep it for a while, delete it, and want another one."""

    def __init__(self, api: Api, wishes: _Wishes, number: int) -> None:
        self._api = api
        self._wishes = wishes
        self._name = f"storm-{number}"
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._states: dict[str, str] = {}
        self._looked = threading.Condition()
        self._deadline = time.monotonic() + wishes.seconds
        self._groups = [self._group(policy) for policy in (ANTI_AFFINITY, ANTI_AFFINITY, AFFINITY)]

    def run(self) -> Counter[str]:
        users = [threading.Thread(target=self._user, args=(n,), daemon=True) for n in range(self._wishes.users)]
        for user in users:
            user.start()
        while any(user.is_alive() for user in users):
            self._look()
            time.sleep(0.15)
        return self._counts

    def _group(self, policy: str) -> str:
        body = {"server_group": {"name": f"{self._name}-{policy}", "policy": policy}}
        return str(self._api.call("POST", "/os-server-groups", body)["server_group"]["id"])

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1

    def _look(self) -> None:
        found = self._api.call("GET", f"/servers/detail?name={self._name}-&limit=1000")["servers"]
        with self._looked:
            self._states = {server["id"]: server["status"] for server in found}
            self._looked.notify_all()

    def _user(self, number: int) -> None:
        dice = random.Random(self._wishes.seed * 1000 + number)
        while time.monotonic() < self._deadline:
            try:
                self._one(dice, f"{self._name}-{number}")
            except RuntimeError as error:
                print(f"  ! {error}", flush=True)
                self._count("failed")

    def _one(self, dice: random.Random, name: str) -> None:
        flavor = dice.choices(self._wishes.flavors, weights=[4, 2, 1])[0]
        server = {"name": name, "flavorRef": flavor, "imageRef": self._wishes.image, "networks": "none"}
        body: dict[str, Any] = {"server": server}
        if dice.random() < 0.3:
            body["os:scheduler_hints"] = {"group": dice.choice(self._groups)}
        self._count("create")
        server_id = str(self._api.call("POST", "/servers", body)["server"]["id"])
        if dice.random() < 0.9:  # some are deleted while they are being built
            self._count(self._wait(server_id, {"ACTIVE", "ERROR"}))
            time.sleep(dice.uniform(0, 1.5))
        self._api.call("DELETE", f"/servers/{server_id}")
        self._wait(server_id, {"gone"})

    def _wait(self, server_id: str, wanted: set[str]) -> str:
        """:raises RuntimeError: a minute has passed."""
        deadline = time.monotonic() + 60
        with self._looked:
            self._looked.wait()  # what was seen before may be older than the request
            while (state := self._states.get(server_id, "gone")) not in wanted:
                if not self._looked.wait(deadline - time.monotonic()):
                    raise RuntimeError(f"server {server_id} is {state} for a minute")
        return state


# -- judging


def _refused_winners(made: Cloud) -> int:
    """Count the grants that a scheduler took for won, and that did not fit when they were consumed.

    That is right only if an earlier grant disappeared between two verdicts, as the one of a server that is deleted
    while it is placed does: it must be rare, or else schedulers answer with what they have not won.
    """
    reasons = "|".join(("the host no longer has room", "another member of the", "the affinity group is at home"))
    return len(re.findall(rf"grant refused instance=\S+ reason=(?:{reasons})", made.logs()))


def _leaks(made: Cloud) -> list[str]:
    """Return what is left after everything was deleted, and what was in flight has had its time to land."""
    database = Database(options_of(made.config))
    deadline = time.monotonic() + _PATIENCE
    try:
        while (left := _left(made, database)) and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        database.close()
    return left


def _left(made: Cloud, database: Database) -> list[str]:
    found = _contradictions(database, made.database, patience=0)
    found += database.read(_left_over)
    domains = list((made.directory / "state" / "fake-domains").glob("*/*.json"))
    return found + ([f"{len(domains)} domains are left"] if domains else [])


def _left_over(conn: sa.Connection) -> list[str]:
    left = {
        "allocations": sa.select(sa.func.count()).select_from(allocations),
        "grants": sa.select(sa.func.count()).select_from(grants),
        "servers": sa.select(sa.func.count()).where(instances.c.deleted == 0),
        "active operations": sa.select(sa.func.count()).where(operations.c.status == "active"),
        "instances of quota": sa.select(sa.func.coalesce(sa.func.sum(quota_usages.c.instances), 0)),
        "builds in progress": sa.select(sa.func.coalesce(sa.func.sum(compute_nodes.c.building), 0)),
    }
    counts = {what: int(conn.execute(statement).scalar_one() or 0) for what, statement in left.items()}
    return [f"{count} {what} are left" for what, count in counts.items() if count]


@dataclass(frozen=True)
class Life:
    """One server: from its acceptance (born) to its end, on a node from active to end if it ever was ACTIVE.

    refused is when it was told that there is no valid host.
    """

    uuid: str
    amounts: Resources
    group: int | None
    node: int | None
    born: datetime.datetime
    active: datetime.datetime | None
    refused: datetime.datetime | None
    end: datetime.datetime

    def may_hold(self, start: datetime.datetime, end: datetime.datetime) -> bool:
        """Tell whether it may have held its place at some moment of the time."""
        return self.node is not None and self.born <= end and self.end + _COMMIT_TIME >= start

    def held_all(self, start: datetime.datetime, end: datetime.datetime) -> bool:
        """Tell whether it held its place during the whole time."""
        return self.node is not None and self.active is not None and self.active <= start and self.end >= end

    def overlaps(self, other: Life) -> bool:
        """Tell whether both were ACTIVE at some moment."""
        return bool(self.active and other.active) and self.active < other.end and other.active < self.end  # type: ignore[operator]


class History:
    """All servers that there ever were, and the rules that they lived under."""

    def __init__(self, made: Cloud) -> None:
        engine = sa.create_engine(made.database)
        with engine.connect() as conn:
            self.lives = list(_lives(conn))
            parts = ("vcpus", "memory_mb", "disk_gb")
            self.capacity = {
                node.id: Resources(*(getattr(node, f"total_{part}") for part in parts))
                for node in conn.execute(sa.select(compute_nodes))
            }
            self.policies = dict(conn.execute(sa.select(server_groups.c.id, server_groups.c.policy)).all())
        engine.dispose()
        self.refused = [life for life in self.lives if life.refused]

    def report(self, what: str, found: Iterable[str]) -> int:
        """Print what was found; return how much it was."""
        sentences = list(found)
        for sentence in sentences:
            print(f"  ! {what}: {sentence}")
        return len(sentences)

    def double_bookings(self) -> Iterator[str]:
        for node_id, capacity in self.capacity.items():
            events = []
            for life in self.lives:
                if life.node == node_id and life.active:
                    events += [(life.active, 1, life), (life.end, 0, life)]  # at one moment, the end comes first
            booked = Resources()
            for at, begins, life in sorted(events, key=lambda event: event[:2]):
                booked = booked + life.amounts if begins else booked - life.amounts
                if not booked.fits(capacity):
                    yield f"node {node_id} had {booked} at {at}"

    def broken_groups(self) -> Iterator[str]:
        members: dict[int, list[Life]] = defaultdict(list)
        for life in self.lives:
            if life.group is not None and life.active:
                members[life.group].append(life)
        for group, lives in members.items():
            together = self.policies.get(group) == AFFINITY
            for number, one in enumerate(lives):
                for other in lives[:number]:
                    if one.overlaps(other) and (one.node == other.node) != together:
                        yield f"{one.uuid} on node {one.node} and {other.uuid} on node {other.node}"

    def wrong_refusals(self) -> Iterator[str]:
        for life in self.refused:
            free = self._place_for(life)
            if free is not None:
                yield f"{life.uuid}, accepted at {life.born} and refused at {life.refused}, fitted on node {free}"

    def _place_for(self, refused: Life) -> int | None:
        """Return a node that was certainly open to the server from its acceptance to its refusal."""
        start, end = refused.born, refused.refused or refused.born
        holding = [life for life in self.lives if life.uuid != refused.uuid and life.may_hold(start, end)]
        booked: dict[int, Resources] = defaultdict(Resources)
        for life in holding:
            booked[life.node or 0] += life.amounts
        for node_id, capacity in self.capacity.items():
            if (booked[node_id] + refused.amounts).fits(capacity) and self._group_allows(refused, node_id, holding):
                return node_id
        return None

    def _group_allows(self, refused: Life, node_id: int, holding: Sequence[Life]) -> bool:
        members = [life for life in holding if life.group == refused.group]
        if refused.group is None or not members:
            return True
        if self.policies.get(refused.group) == ANTI_AFFINITY:
            return all(life.node != node_id for life in members)
        # The home of an affinity group may have moved meanwhile, unless somebody was there all the time.
        stayed = {life.node for life in members if life.held_all(refused.born, refused.refused or refused.born)}
        return stayed == {node_id}


def _lives(conn: sa.Connection) -> Iterator[Life]:
    for row in conn.execute(sa.select(instances)):
        is_refused = row.fault_message is not None and "No valid host" in row.fault_message
        yield Life(
            uuid=row.uuid,
            amounts=Resources(row.vcpus, row.memory_mb, row.disk_gb),
            group=row.group_id,
            node=row.node_id,
            born=row.created_at,
            active=row.launched_at,
            refused=row.fault_at if is_refused else None,
            end=row.deleted_at or datetime.datetime.max - _COMMIT_TIME,
        )

# SPDX-License-Identifier: Apache-2.0
"""boot: from POST /servers to ACTIVE through every program, with the fake hypervisor; then the deletes.

Single creates come from so many connections at once, then one request creates many. The time to ACTIVE is a user's:
from the moment before the POST to the moment at which a list shows the server as ACTIVE.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fixtures.books import disagreements
from tests.fixtures.cloud import Cloud
from tools.benchmarks.compute_api import Api
from tools.benchmarks.figures import Figure, Result, percentile
from tools.benchmarks.infrastructure import Infrastructure, Usage, cloud

PROGRAMS = ("api", "conductor", "scheduler", "compute")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hosts", type=int, default=10, help="hosts, all of one compute process (default: 10)")
    parser.add_argument("--servers", type=int, default=200, help="single creates (default: 200)")
    parser.add_argument("--concurrency", type=int, default=20, help="connections that create (default: 20)")
    parser.add_argument("--multi", type=int, default=100, help="servers of the one multi-create (default: 100)")
    parser.add_argument("--warm-up", type=int, default=20, help="servers created and deleted before (default: 20)")
    parser.add_argument("--poll", type=float, default=0.2, help="seconds between two looks (default: 0.2)")
    parser.add_argument("--schedulers", type=int, default=1, help="scheduler processes (default: 1)")
    parser.add_argument("--conductors", type=int, default=1, help="conductor processes (default: 1)")
    parser.add_argument("--rpc-workers", type=int, default=None, help="[DEFAULT]rpc_workers (default: as shipped)")


def run(options: argparse.Namespace, infrastructure: Infrastructure) -> list[Result]:
    servers = options.servers + options.multi
    room = -(-servers // options.hosts) + 2
    settings: dict[str, dict[str, str]] = {
        "fake": {
            "hosts": f"host[1-{options.hosts}]",
            "vcpus": str(room),
            "memory_mb": str(512 * room),
            "disk_gb": str(room),
        }
    }
    if options.rpc_workers:
        settings["DEFAULT"] = {"rpc_workers": str(options.rpc_workers)}
    with cloud(infrastructure, settings) as made:
        made.start_all(schedulers=options.schedulers, conductors=options.conductors)
        return _Run(options, infrastructure, made).results()


@dataclass
class _Phase:
    """What one kind of load has come to. latencies are in seconds; curve has a point each time that one is done."""

    seconds: float
    latencies: list[float]
    answers: list[float]
    cpu: dict[str, float]
    statements: dict[str, float]
    curve: list[tuple[float, float]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.latencies)


class _Run:
    def __init__(self, options: argparse.Namespace, infrastructure: Infrastructure, made: Cloud) -> None:
        self._options = options
        self._cloud = made
        client = made.client()
        self._flavor, self._image = client.flavor(), client.image()
        self._api = Api(made.port, client.headers)
        self._usage = Usage(infrastructure, made)

    def results(self) -> list[Result]:
        options = self._options
        if options.warm_up:
            self._boot(options.warm_up, 1)
            self._delete()
        results = [self._result("boot", self._boot(options.servers, 1), options.servers)]
        if options.multi:
            results.append(self._result("boot (one multi-create)", self._boot(options.multi, options.multi)))
        wrong = disagreements(self._cloud.database)
        if wrong:
            raise RuntimeError("the books are wrong: " + "; ".join(wrong))
        results.append(self._result("delete", self._delete()))
        return results

    def _result(self, name: str, phase: _Phase, targets_for: int = 0) -> Result:
        ours = sum(phase.cpu.get(program, 0.0) for program in PROGRAMS)
        figures = [
            Figure("servers per second", phase.count / phase.seconds, "/s", at_least=60 if targets_for else None),
            Figure("p50 until done", percentile(phase.latencies, 50), "s"),
            Figure("p99 until done", percentile(phase.latencies, 99), "s", at_most=5 if targets_for else None),
            Figure("p50 until answered", 1000 * percentile(phase.answers, 50), "ms"),
            Figure("p99 until answered", 1000 * percentile(phase.answers, 99), "ms"),
            Figure("CPU per server", 1000 * ours / phase.count, "ms", at_most=30 if targets_for else None),
            *(Figure(f"  {name}", 1000 * used / phase.count, "ms") for name, used in phase.cpu.items()),
            *(Figure(f"SQL {name} per server", n / phase.count, "") for name, n in phase.statements.items()),
        ]
        settings = {
            "servers": phase.count,
            "hosts": self._options.hosts,
            "concurrency": self._options.concurrency if targets_for else 1,
            "schedulers": self._options.schedulers,
            "conductors": self._options.conductors,
        }
        return Result(name, settings, figures, phase.curve)

    def _boot(self, count: int, per_request: int) -> _Phase:
        """Create servers, and look until all are ACTIVE.

        :raises RuntimeError: a server went to ERROR, or a request was refused.
        """
        body: dict[str, Any] = {"flavorRef": self._flavor, "imageRef": self._image, "networks": "none"}
        if per_request > 1:
            body["min_count"] = body["max_count"] = per_request
        mark = f"bench-{time.monotonic_ns()}"
        began: dict[str, float] = {}
        answers: list[float] = []

        def post(number: int) -> None:
            name = f"{mark}-{number:05d}"
            began[name] = time.monotonic()
            self._api.call("POST", "/servers", {"server": {**body, "name": name}})
            answers.append(time.monotonic() - began[name])

        requests = count // per_request
        concurrency = min(self._options.concurrency, requests)
        self._usage.since()
        first = time.monotonic()
        posting = Crowd(concurrency, range(requests), post)
        done = self._wait_for_active(mark, count, posting)
        last = max(done.values())
        cpu, statements = self._usage.since()
        posting.join()
        latencies = [at - began[name if per_request == 1 else name.rpartition("-")[0]] for name, at in done.items()]
        return _Phase(last - first, latencies, answers, cpu, statements, _curve(first, done.values()))

    def _wait_for_active(self, mark: str, count: int, posting: Crowd) -> dict[str, float]:
        done: dict[str, float] = {}
        path = f"/servers?name={mark}&status=ACTIVE&limit=1000"
        deadline = time.monotonic() + 120 + count / 5
        while len(done) < count:
            time.sleep(self._options.poll)
            posting.check()
            found = self._api.call("GET", path)["servers"]
            now = time.monotonic()
            for server in found:
                done.setdefault(server["name"], now)
            if now > deadline:
                raise RuntimeError(f"{len(done)} of {count} servers are ACTIVE after {now - deadline:.0f} s more")
        return done

    def _delete(self) -> _Phase:
        ids = [server["id"] for server in self._api.call("GET", "/servers?limit=1000")["servers"]]
        began: dict[str, float] = {}
        answers: list[float] = []

        def delete(number: int) -> None:
            began[ids[number]] = time.monotonic()
            self._api.call("DELETE", f"/servers/{ids[number]}")
            answers.append(time.monotonic() - began[ids[number]])

        self._usage.since()
        first = time.monotonic()
        deleting = Crowd(min(self._options.concurrency, len(ids)), range(len(ids)), delete)
        gone: dict[str, float] = {}
        while len(gone) < len(ids):
            time.sleep(self._options.poll)
            deleting.check()
            left = {server["id"] for server in self._api.call("GET", "/servers?limit=1000")["servers"]}
            now = time.monotonic()
            for server_id in set(ids) - left:
                gone.setdefault(server_id, now)
        last = max(gone.values())
        cpu, statements = self._usage.since()
        deleting.join()
        latencies = [at - began[server_id] for server_id, at in gone.items()]
        return _Phase(last - first, latencies, answers, cpu, statements, _curve(first, gone.values()))


def _curve(first: float, times: Any) -> list[tuple[float, float]]:
    return [(0.0, 0.0), *((round(at - first, 3), float(number)) for number, at in enumerate(sorted(times), start=1))]


class Crowd:
    """Threads that share out a list of numbers; the first error of one is everybody's."""

    def __init__(self, size: int, numbers: Sequence[int], function: Callable[[int], None]) -> None:
        self._numbers = iter(numbers)
        self._lock = threading.Lock()
        self._function = function
        self._errors: list[Exception] = []
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(size)]
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Raise what a thread has met."""
        if self._errors:
            raise self._errors[0]

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        self.check()

    def _work(self) -> None:
        while not self._errors:
            with self._lock:
                number = next(self._numbers, None)
            if number is None:
                return
            try:
                self._function(number)
            except Exception as error:  # noqa: BLE001 - it is raised again where the crowd is waited for
                self._errors.append(error)

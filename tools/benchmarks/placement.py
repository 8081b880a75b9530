# SPDX-License-Identifier: Apache-2.0
"""placement: from requests to grants that hold, through the broker; no api, conductor or compute takes part.

Client processes call select_destinations as conductors do, in batches; the hosts are rows. Grants are left standing,
so that each reread has more to replay than in a cloud whose computes consume them at once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from nova_lite import conf, rpc
from nova_lite.context import service_context
from nova_lite.db import registry
from nova_lite.db.clock import now
from nova_lite.db.models import compute_nodes, server_groups, services
from nova_lite.db.session import Database
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.group import ANTI_AFFINITY, Group
from nova_lite.objects.node import NodeInventory
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.resources import Resources
from nova_lite.scheduler.rpcapi import SchedulerAPI
from tests.fixtures.cloud import Cloud
from tools.benchmarks.figures import Figure, Result, percentile
from tools.benchmarks.infrastructure import Infrastructure, Usage, cloud

# Sizes and how often they are asked for: the small ones are many.
SIZES = [(1, 1024, 10)] * 5 + [(2, 2048, 20)] * 3 + [(4, 4096, 40)] * 2
MEAN_VCPUS = sum(size[0] for size in SIZES) / len(SIZES)
HOST = Resources(64, 65536, 640)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hosts", type=series, default=[1000], help="N, or N..M for a series (default: 1000)")
    parser.add_argument("--schedulers", type=series, default=[4], help="processes, N or N..M (default: 4)")
    parser.add_argument("--requests", type=int, default=10000, help="requests (default: 10000)")
    parser.add_argument("--batch", type=int, default=64, help="requests per call; 1: lone requests (default: 64)")
    parser.add_argument("--rate", type=float, default=50, help="lone requests per second (default: 50)")
    parser.add_argument("--clients", type=int, default=2, help="client processes (default: 2)")
    parser.add_argument("--calls", type=int, default=4, help="calls that a client has under way (default: 4)")
    parser.add_argument(
        "--fill", type=_numbers, default=[30], help="percent that is full at the end, N or N,M (default: 30)"
    )
    parser.add_argument("--anti-affinity", action="store_true", help="one required group of 1,000 on 5,000 hosts")


def series(text: str) -> list[int]:
    """Read "4", or "100..10000": powers of ten of the first for large numbers, doubles for small ones."""
    first, _dots, last = text.partition("..")
    numbers, factor = [int(first)], 10 if int(first) >= 100 else 2
    while last and numbers[-1] * factor <= int(last):
        numbers.append(numbers[-1] * factor)
    return numbers


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def run(options: argparse.Namespace, infrastructure: Infrastructure) -> Iterator[Result]:
    if options.anti_affinity:
        options.hosts, options.requests = [5000], 1000
    for hosts in options.hosts:
        for schedulers in options.schedulers:
            for fill in options.fill:
                yield _run(options, infrastructure, _Setting(hosts, schedulers, fill))


@dataclass(frozen=True)
class _Setting:
    hosts: int
    schedulers: int
    fill: int


def _run(options: argparse.Namespace, infrastructure: Infrastructure, setting: _Setting) -> Result:
    # Grants outlive the run, and hosts are up without heartbeats.
    settings = {"scheduler": {"grant_lifetime": "3600"}}
    with cloud(infrastructure, settings) as made:
        group = _prepare(made, setting, options)
        for _number in range(setting.schedulers):
            made.start("scheduler")
        for process in made.processes:
            process.wait_until_started()
        usage = Usage(infrastructure, made)
        with Clients(options.clients, made.config, options, group) as clients:
            clients.run(64 * setting.schedulers, 64)  # every scheduler reads its view
            usage.since()
            began = time.monotonic()
            calls = clients.run(options.requests, options.batch)
            seconds = time.monotonic() - began
        cpu, statements = usage.since()
        return _result(options, setting, calls, seconds, (cpu, statements), made)


def _prepare(made: Cloud, setting: _Setting, options: argparse.Namespace) -> Group | None:
    """Write the hosts, filled such that the requests make up the rest of what is asked for, and the group."""
    database = Database(options_of(made.config))
    asked = 100 * options.requests * MEAN_VCPUS / (setting.hosts * HOST.vcpus)
    add_hosts(database, setting.hosts, max(0.0, setting.fill - asked))
    group = Group(1, str(uuid.uuid4()), ANTI_AFFINITY) if options.anti_affinity else None
    if group:
        row = {"uuid": group.uuid, "project_id": "p", "user_id": "u", "name": "group", "policy": group.policy}
        database.write(lambda conn: conn.execute(sa.insert(server_groups).values(id=group.id, **row)))
    database.close()
    return group


def options_of(config: Path) -> cfg.ConfigOpts:
    """Load a configuration file."""
    options = cfg.ConfigOpts()
    conf.register(options)
    options([], default_config_files=[str(config)])
    return options


def add_hosts(database: Database, count: int, fill: float) -> None:
    """Write rows of hosts whose services never go down, so many percent of each taken already."""

    def write(conn: sa.Connection) -> None:
        for number in range(1, count + 1):
            name = f"host{number}"
            service = registry.register_service(conn, registry.COMPUTE, name, "nobody")
            registry.register_node(conn, service, NodeInventory(str(uuid.uuid4()), name, name, HOST))
        conn.execute(sa.update(services).values(last_seen_at=now(86400)))
        used = {f"used_{part}": int(getattr(HOST, part) * fill / 100) for part in ("vcpus", "memory_mb", "disk_gb")}
        conn.execute(sa.update(compute_nodes).values(**used))

    database.write(write)


@dataclass(frozen=True)
class Call:
    """One call: seconds, and what came of its requests."""

    at: float
    seconds: float
    won: int
    fall_overs: int
    refused: int


class Clients:
    """Processes that ask the schedulers, each through calls in threads of its own."""

    def __init__(self, count: int, config: Path, options: argparse.Namespace, group: Group | None) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes = []
        self._processes = []
        settings = (str(config), options.calls, options.rate, group)
        for number in range(count):
            mine, theirs = context.Pipe()
            process = context.Process(target=_client, args=(theirs, number, *settings), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(mine)
            self._processes.append(process)

    def __enter__(self) -> Clients:
        return self

    def __exit__(self, *_error: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(20)

    def run(self, requests: int, batch: int) -> list[Call]:
        """Ask for so many grants, shared out among the clients.

        :raises RuntimeError: a call failed.
        """
        clients = min(len(self._pipes), max(1, requests // batch))
        for number, pipe in enumerate(self._pipes[:clients]):
            pipe.send((requests // clients + (number < requests % clients), batch, clients))
        calls = []
        for pipe in self._pipes[:clients]:
            answer = pipe.recv()
            if isinstance(answer, str):
                raise RuntimeError(answer)
            calls += answer
        return calls


def _client(pipe: Any, number: int, config: str, threads: int, rate: float, group: Group | None) -> None:
    """Be a client process: run what comes through the pipe until it is closed."""
    # oslo.messaging reads some options from the global configuration object alone.
    rpc.start(conf.load(["--config-file", config], "bench"))
    client = _Client(SchedulerAPI(60), random.Random(number), threads, group)
    while True:
        try:
            requests, batch, clients = pipe.recv()
        except EOFError:
            break
        try:
            calls = client.lone(requests, rate / clients) if batch == 1 else client.batches(requests, batch)
            pipe.send(calls)
        except rpc.Error as error:
            pipe.send(f"a call failed: {error!r}")
    rpc.stop()


class _Client:
    def __init__(self, scheduler: SchedulerAPI, dice: random.Random, threads: int, group: Group | None) -> None:
        self._scheduler = scheduler
        self._dice = dice
        self._pool = ThreadPoolExecutor(threads)
        self._group = group

    def batches(self, requests: int, batch: int) -> list[Call]:
        """Ask for full batches, as many at once as there are threads."""
        sizes = [min(batch, requests - done) for done in range(0, requests, batch)]
        return list(self._pool.map(self._call, [self._specs(size) for size in sizes]))

    def lone(self, requests: int, rate: float) -> list[Call]:
        """Ask for one at a time at a steady rate, whether or not the one before was answered."""
        futures, start = [], time.monotonic()
        for number in range(requests):
            time.sleep(max(0.0, start + number / rate - time.monotonic()))
            futures.append(self._pool.submit(self._call, self._specs(1)))
        return [future.result() for future in futures]

    def _call(self, specs: Sequence[RequestSpec]) -> Call:
        began = time.monotonic()
        selections = self._scheduler.select_destinations(service_context(), specs)
        ended = time.monotonic()
        won = sum(selection.grant_id is not None for selection in selections)
        fall_overs = sum(selection.fall_overs for selection in selections)
        return Call(ended, ended - began, won, fall_overs, len(selections) - won)

    def _specs(self, count: int) -> list[RequestSpec]:
        return [spec(self._dice, self._group) for _number in range(count)]


def spec(dice: random.Random, group: Group | None = None) -> RequestSpec:
    """Make a request of a size by chance."""
    vcpus, memory_mb, disk_gb = dice.choice(SIZES)
    flavor = Flavor(f"f{vcpus}", f"f{vcpus}", vcpus, memory_mb, disk_gb)
    return RequestSpec(str(uuid.UUID(int=dice.getrandbits(128))), "p", flavor.resources, flavor, group=group)


def _result(
    options: argparse.Namespace,
    setting: _Setting,
    calls: Sequence[Call],
    seconds: float,
    used: tuple[dict[str, float], dict[str, float]],
    made: Cloud,
) -> Result:
    cpu, statements = used
    won = sum(call.won for call in calls)
    fall_overs = sum(call.fall_overs for call in calls)
    refused = sum(call.refused for call in calls)
    targets = _targets(options, setting)
    first = min(call.at - call.seconds for call in calls)
    count = len(calls)
    curve, done = [(0.0, 0.0)], 0
    for call in sorted(calls, key=lambda call: call.at):
        done += call.won
        curve.append((round(call.at - first, 3), float(done)))
    retries = sum(process.log.read_text(errors="replace").count("retry what=") for process in made.processes)
    per_request = {
        f"CPU per request, {name}": Figure(f"CPU per request, {name}", 1000 * value / options.requests, "ms")
        for name, value in cpu.items()
    }
    figures = [
        Figure("grants won per second", won / seconds, "/s", at_least=targets.get("rate")),
        Figure("p50 of a call", 1000 * percentile([c.seconds for c in calls], 50), "ms", at_most=targets.get("p50")),
        Figure("p99 of a call", 1000 * percentile([c.seconds for c in calls], 99), "ms", at_most=targets.get("p99")),
        *per_request.values(),
        Figure("fall-overs per request", fall_overs / options.requests, "", at_most=targets.get("fall_overs")),
        Figure("transactions retried per request", retries / options.requests),
        Figure("refused", refused),
        *(Figure(f"SQL {name} per call", value / count) for name, value in statements.items()),
    ]
    settings = {
        "hosts": setting.hosts,
        "schedulers": setting.schedulers,
        "requests": options.requests,
        "batch": options.batch,
        "fill": f"{setting.fill}%",
        **({"group": ANTI_AFFINITY} if options.anti_affinity else {}),
    }
    return Result("placement", settings, figures, curve)


def _targets(options: argparse.Namespace, setting: _Setting) -> dict[str, float]:
    if options.anti_affinity:
        return {"rate": 600}
    if options.batch == 1:
        return {"p50": 15, "p99": 60}
    targets: dict[str, float] = {}
    if (setting.hosts, setting.schedulers, setting.fill) == (1000, 4, 30):
        targets["rate"] = 1500
    if setting.fill <= 30:
        targets["fall_overs"] = 0.02
    return targets

# SPDX-License-Identifier: Apache-2.0
"""view: one scheduler's choosing alone, from a view in memory that is read once; no grants are written."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from oslo_config import cfg

from nova_lite import conf
from nova_lite.db import migration
from nova_lite.db.session import Database
from nova_lite.scheduler.placer import Placer
from nova_lite.scheduler.request import Request
from tools.benchmarks.figures import Figure, Result
from tools.benchmarks.infrastructure import Infrastructure
from tools.benchmarks.placement import add_hosts, series, spec

NEEDS_SERVERS = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hosts", type=series, default=[100, 1000, 10000], help="N or N..M (default: 100..10000)")
    parser.add_argument("--batch", type=int, default=64, help="requests that choose together (default: 64)")
    parser.add_argument("--batches", type=int, default=50, help="batches (default: 50)")


def run(options: argparse.Namespace, infrastructure: Infrastructure) -> list[Result]:
    return [_run(options, hosts) for hosts in options.hosts]


def _run(options: argparse.Namespace, hosts: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="nova-lite-bench-") as directory:
        settings = _options(Path(directory))
        database = Database(settings)
        migration.sync(database)
        add_hosts(database, hosts, 0)
        placer = Placer(settings, database, seed=1)
        began = time.process_time()
        database.read(lambda conn: placer._look(conn, []))  # the view is the placer's own business otherwise
        reading = time.process_time() - began
        seconds = _choose(placer, options)
        database.close()
    count = options.batch * options.batches
    figures = [
        Figure("CPU per choice", 1e6 * seconds / count, "us"),
        Figure("choices per CPU second", count / seconds, "/s"),
        Figure("CPU of reading all hosts", 1000 * reading, "ms"),
    ]
    return Result("view", {"hosts": hosts, "batch": options.batch, "batches": options.batches}, figures)


def _choose(placer: Placer, options: argparse.Namespace) -> float:
    dice = random.Random(1)
    batches = [[Request(spec(dice)) for _r in range(options.batch)] for _b in range(options.batches)]
    began = time.process_time()
    for batch in batches:
        placer._choose(batch)
    return time.process_time() - began


def _options(directory: Path) -> cfg.ConfigOpts:
    options = cfg.ConfigOpts()
    conf.register(options)
    options([], default_config_files=[])
    options.set_override("connection", f"sqlite:///{directory}/hosts.sqlite", group="database")
    return options

# SPDX-License-Identifier: Apache-2.0
"""The command line of tools/bench: starts what a benchmark needs, runs it, and reports."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.fixtures.programs import DidNotStartError, ProgramMissingError
from tools.benchmarks import boot, figures, infrastructure, lists, machine, placement, storm, verdict, view
from tools.benchmarks.figures import Result

BENCHMARKS = {
    "boot": boot,
    "lists": lists,
    "placement": placement,
    "storm": storm,
    "verdict": verdict,
    "view": view,
}


def main(command_line: Sequence[str]) -> int:
    options = _parser().parse_args(command_line)
    # What was started is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    about = machine.description()
    for name, value in about.items():
        print(f"{name}: {value}")
    try:
        results = _run(options)
    except (RuntimeError, TimeoutError, ProgramMissingError, DidNotStartError) as error:
        print(f"bench: error: {error}", file=sys.stderr)
        return 1
    if options.repeat > 1:
        results = _medians(results)
        for result in results:
            print("\nmedians of " + figures.table(result))
    if options.json:
        figures.write_json(options.json, about, results)
    if options.plot:
        try:
            figures.plot(options.plot, results)
        except ImportError as missing:
            print(f"bench: error: no plot, for {missing}: install nova-lite[bench]", file=sys.stderr)
            return 1
    return 1 if options.check and any(f.is_reached is False for r in results for f in r.figures) else 0


def _run(options: argparse.Namespace) -> list[Result]:
    benchmark = BENCHMARKS[options.benchmark]
    results = []
    with contextlib.ExitStack() as stack:
        servers = infrastructure.Infrastructure(None, None, options.database, options.transport)
        if getattr(benchmark, "NEEDS_SERVERS", True):
            servers = stack.enter_context(infrastructure.running(options.database, options.transport))
        for _number in range(options.repeat):
            for result in benchmark.run(options, servers):
                print(f"\n{figures.table(result)}", flush=True)
                results.append(result)
    return results


def _medians(results: Sequence[Result]) -> list[Result]:
    alike: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        alike[result.title].append(result)
    return [figures.median(runs) for runs in alike.values()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench", description="Measure nova_lite on a RabbitMQ and a MariaDB of its own, or on given ones."
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--database", metavar="URL", help="an empty database, as a SQLAlchemy URL")
    common.add_argument("--transport", metavar="URL", help="a message bus, as oslo.messaging's transport_url")
    common.add_argument("--repeat", type=int, default=1, metavar="N", help="run so often, and show the medians")
    common.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    common.add_argument("--plot", type=Path, metavar="FILE", help="draw a plot (needs matplotlib)")
    common.add_argument("--check", action="store_true", help="fail if a target is not reached")
    benchmarks = parser.add_subparsers(dest="benchmark", metavar="BENCHMARK", required=True)
    for name, module in BENCHMARKS.items():
        text = (module.__doc__ or "").split("\n\n", 1)
        formatter = argparse.RawDescriptionHelpFormatter
        one = benchmarks.add_parser(
            name,
            parents=[common],
            help=text[0].partition(": ")[2],
            description=module.__doc__,
            formatter_class=formatter,
        )
        module.add_arguments(one)
    return parser

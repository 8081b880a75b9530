# SPDX-License-Identifier: Apache-2.0
"""The command line of tools/tempest: brings up a cloud, runs stock Tempest against it, and compares.

Tests are grouped in rungs (tests/tempest/rungs); a rung is named by its file, or by what its name begins with. The exit
status is 0 if every test passed but for those that are known to fail (tests/tempest/known_failures.yaml), 1 if another
failed, was skipped, or passed although it is known to fail, and 2 if Tempest could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import keystoneauth1.exceptions

from tests.fixtures.programs import DidNotStartError, ProgramMissingError
from tests.tempest import fake_cloud, preparation, rungs, stacked_cloud, stock
from tests.tempest.rungs import Account, Rung
from tests.tempest.stock import Result

_CLOUDS = {"fake": fake_cloud.running, "qemu": stacked_cloud.running}
_WHAT = {"fake": "two fake hosts in one process", "qemu": "two hosts with real guests, by devstack/stack.sh"}


def main(command_line: Sequence[str]) -> int:
    options = _parser().parse_args(command_line)
    # What was started is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        chosen = _choose(rungs.load(), options.rung)
        return _run(options, chosen)
    except (RuntimeError, ValueError, TimeoutError, ProgramMissingError, DidNotStartError) as error:
        print(f"tempest: error: {error}", file=sys.stderr)
    except keystoneauth1.exceptions.ClientException as error:
        print(f"tempest: error: the cloud cannot be prepared: {error}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tools/tempest", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--hypervisor", choices=list(_CLOUDS), default="fake", help="what the cloud is made of (qemu: as root)"
    )
    parser.add_argument("--rung", action="append", metavar="NAME", help="run this rung; may be given more than once")
    parser.add_argument("--test", metavar="TEXT", help="run only the tests that have this in their name")
    parser.add_argument("--list", action="store_true", help="list the rungs, and run nothing")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2, metavar="N", help="tests at the same time")
    parser.add_argument("--keep", action="store_true", help="keep the cloud until Enter, and its files for good")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="where the files go (default: a new one)")
    return parser


def _choose(all_rungs: Sequence[Rung], names: Sequence[str] | None) -> list[Rung]:
    chosen = [] if names else list(all_rungs)
    for name in names or ():
        found = [rung for rung in all_rungs if rung.name == name] or [
            rung for rung in all_rungs if rung.name.startswith(name)
        ]
        if len(found) != 1:
            raise ValueError(f"no rung is called {name!r}: there are {', '.join(rung.name for rung in all_rungs)}")
        chosen += found
    return chosen


def _run(options: argparse.Namespace, chosen: Sequence[Rung]) -> int:
    if options.list:
        for rung in chosen:
            print(f"{rung.name:<16} {len(rung.tests):>4}  {rung.about}")
        return 0
    directory = options.directory or Path(tempfile.mkdtemp(prefix="nova-lite-tempest-"))
    directory.mkdir(parents=True, exist_ok=True)
    good = False
    try:
        _say("Installing Tempest, Keystone and Glance, unless they are there already")
        stock.environment()
        _say(f"Starting a cloud of {_WHAT[options.hypervisor]}, with Keystone and Glance")
        with _CLOUDS[options.hypervisor](directory) as login:
            configuration = stock.configure(directory, login, preparation.prepare(login, options.workers))
            accounts = _ask(directory, configuration, chosen, options)
            if options.keep:
                input(f"The cloud is at {login.auth_url}. Press Enter to take it down: ")
        good = _report(accounts)
        return 0 if good else 1
    finally:
        if good and not options.keep and not options.directory:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            print(f"Logs, traces and results: {directory}")


def _ask(directory: Path, configuration: Path, chosen: Sequence[Rung], options: argparse.Namespace) -> list[Account]:
    known = rungs.known_failures(options.hypervisor)
    accounts = []
    for rung in chosen:
        tests = tuple(test for test in rung.tests if not options.test or options.test in test)
        if not tests:
            continue
        narrowed = Rung(rung.name, rung.about, tests)
        _say(f"{rung.name}: {rung.about} ({len(tests)} tests)")
        began = time.monotonic()
        results: list[Result] = []
        with (directory / f"{rung.name}.jsonl").open("w") as file:
            for result in stock.run(directory, configuration, tests, options.workers):
                results.append(result)
                file.write(json.dumps(vars(result)) + "\n")
                file.flush()
        found = rungs.account(narrowed, results, known)
        print(f"{len(found.passed)} of {len(tests)} passed in {time.monotonic() - began:.0f} s", flush=True)
        for test, words in found.regressions.items():
            print(f"  {test}\n      {_gist(words)}", flush=True)
        accounts.append(found)
    return accounts


def _gist(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    kind = words.partition(":")[0]
    return f"{kind}: {lines[-1][:400]}" if lines else kind


def _report(accounts: Sequence[Account]) -> bool:
    print(f"\n{'rung':<16} {'passed':>6} / {'listed':<6} {'known to fail':>13} {'failed':>6}")
    for found in accounts:
        failed = len(found.regressions) + len(found.mended)
        print(
            f"{found.rung.name:<16} {len(found.passed):>6} / {len(found.rung.tests):<6} {len(found.known):>13}"
            f" {failed:>6}"
        )
    for found in accounts:
        for test, reason in found.known.items():
            print(f"known to fail: {test}: {reason}")
        for test in found.regressions:
            print(f"FAILED: {test}")
        for test in found.mended:
            print(f"PASSED, although known to fail (take it out of known_failures.yaml): {test}")
    return not any(found.regressions or found.mended for found in accounts)


def _say(text: str) -> None:
    print(f"==> {text}", flush=True)

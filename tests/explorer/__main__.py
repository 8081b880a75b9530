# SPDX-License-Identifier: Apache-2.0
"""Explore cases by name and print what was seen."""

from __future__ import annotations

import argparse
import sys

from tests.explorer.cases import CASES
from tests.explorer.mistakes import MISTAKES
from tests.explorer.search import Search
from tests.explorer.world import Lab


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.explorer", description="Explore the grants protocol.")
    parser.add_argument("names", nargs="*", help="parts of the names of cases (default: all cases)")
    parser.add_argument("--mistakes", action="store_true", help="tell what each re-introduced mistake leads to")
    parser.add_argument("--runs", type=int, default=1_000_000, help="give a case up after so many runs")
    arguments = parser.parse_args()
    lab = Lab()
    if arguments.mistakes:
        for mistake in MISTAKES:
            with mistake.made():
                print(f"{mistake.name}\n\n{Search(lab, mistake.case, mistake.change).explore()}\n\n")
        return 0
    broken = False
    print(f"{'case':34} {'states':>7} {'steps':>8} {'runs':>7} {'ends':>6} {'seconds':>8}")
    for case in CASES:
        if arguments.names and not any(name in case.name for name in arguments.names):
            continue
        report = Search(lab, case).explore(arguments.runs)
        counts = f"{report.states:7d} {report.steps:8d} {report.runs:7d} {report.ends:6d} {report.seconds:8.1f}"
        print(f"{case.name:34} {counts}{'' if report.complete or report.broken else ' (given up)'}", flush=True)
        if report.broken:
            broken = True
            print(f"\n{report}\n")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())

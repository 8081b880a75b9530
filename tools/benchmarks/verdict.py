# SPDX-License-Identifier: Apache-2.0
"""verdict: the replay of ledgers alone, without I/O."""

from __future__ import annotations

import argparse
import random
import time

from nova_lite.objects.group import ANTI_AFFINITY
from nova_lite.objects.ledger import Grant, GroupBooks, Ledger, NodeBooks
from nova_lite.objects.resources import Resources
from nova_lite.scheduler.verdict import Verdict
from tools.benchmarks.figures import Figure, Result
from tools.benchmarks.infrastructure import Infrastructure

NEEDS_SERVERS = False
_SIZES = (Resources(1, 1024, 10), Resources(2, 2048, 20), Resources(4, 4096, 40))
_ROOM = Resources(16, 16384, 160)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=64, help="nodes of a ledger (default: 64)")
    parser.add_argument("--grants", type=int, default=10, help="grants on each node (default: 10)")
    parser.add_argument("--ledgers", type=int, default=200, help="ledgers that are judged (default: 200)")


def run(options: argparse.Namespace, infrastructure: Infrastructure) -> list[Result]:
    dice = random.Random(1)
    ledgers = [_ledger(dice, options.nodes, options.grants) for _number in range(options.ledgers)]
    began = time.process_time()
    held = sum(verdict.holds(grant) for ledger in ledgers for verdict in [Verdict(ledger)] for grant in ledger.grants)
    seconds = time.process_time() - began
    judged = options.ledgers * options.nodes * options.grants
    figures = [
        Figure("grants judged per CPU second", judged / seconds, "/s"),
        Figure("CPU per ledger", 1000 * seconds / options.ledgers, "ms"),
        Figure("grants that hold", held / judged),
    ]
    settings = {"nodes": options.nodes, "grants": options.grants, "ledgers": options.ledgers}
    return [Result("verdict", settings, figures)]


def _ledger(dice: random.Random, nodes: int, each: int) -> Ledger:
    """Make a ledger of which about a third of the grants are lost; every tenth is of an anti-affinity group."""
    books = {number: NodeBooks(number, _ROOM, Resources()) for number in range(1, nodes + 1)}
    group = GroupBooks(1, ANTI_AFFINITY, 1, {})
    grants = []
    for node_id in books:
        for ticket in range(1, each + 1):
            number = len(grants) + 1
            group_id = 1 if dice.random() < 0.1 else None
            size = dice.choice(_SIZES)
            grants.append(Grant(number, f"consumer-{number}", "", node_id, ticket, size, group_id, number))
    dice.shuffle(grants)
    return Ledger(books, {1: group}, tuple(grants))

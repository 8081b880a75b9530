# SPDX-License-Identifier: Apache-2.0
"""The placer: turns a batch of requests into grants that hold.

Naively, a scheduler would choose a host from its view and send the server there; two schedulers would choose the same
last place, and the compute would turn one of them away after seconds of work. A lock around choosing would make one
scheduler of many. Instead each batch goes through rounds:

    choose   for each request a host, from the view in memory, in an order of this scheduler's own among near-equals
    write    one transaction: a grant for each, with tickets handed out under the rows' locks
    reread   one snapshot: the chosen nodes' allocations and all live grants on them
    verdict  replay (verdict.py): a grant that holds is the answer; a lost one is removed, the view corrected, and its
             request goes into the next round with one host less

A request that the view offers no host is not told so: the view may be wrong. ``View.verify`` reads everything afresh
and replays it, and only if that leaves no host either, the answer is "no", with counts of what each filter turned
away. That is as true as an answer can be: at the moment of that snapshot there was no place.

Costs per round, whatever the batch's size: 1 look of 2 to 5 statements, 1 write of 3 to 6, 1 reread of 1 to 4; lost
grants add 1 write of 2 statements, and a "no" adds one reading of all hosts, shared by all that are about to be told
so. A failure costs nobody but the batch: what was written expires, or is replaced when its request comes again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log
from stevedore import named

from nova_lite import metrics
from nova_lite.context import continuing
from nova_lite.db import grants, hosts
from nova_lite.db.grants import GrantRequest
from nova_lite.db.session import Database
from nova_lite.objects.group import AFFINITY
from nova_lite.objects.ledger import Grant, Ledger
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.selection import Selection
from nova_lite.scheduler import explain
from nova_lite.scheduler.chooser import Chooser
from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.verdict import Verdict
from nova_lite.scheduler.view import View
from nova_lite.scheduler.weighers import Weigher

LOG = log.getLogger(__name__)

# Up to so many nodes, their grants come in one statement with them.
_FEW = 4


class Placer:
    """Places batches, one after the other; a scheduler process has one."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database, seed: int | None = None) -> None:
        self._conf = conf
        self._db = db
        self._random = random.Random(seed)
        self._view = View(conf, db)
        self._filters: list[Filter] = [
            kind(conf) for kind in _plugins("nova_lite.filters", conf.scheduler.enabled_filters)
        ]
        weighers: list[Weigher] = [
            kind(conf) for kind in _plugins("nova_lite.weighers", conf.scheduler.enabled_weighers)
        ]
        self._chooser = Chooser(self._view, self._filters, weighers, conf.scheduler.near_equal, self._random)
        self._picked: dict[int, int] = {}

    def place(self, specs: Sequence[RequestSpec]) -> list[Selection]:
        """Return a selection for each spec, in order; for those with one, a grant that holds is written."""
        requests = [Request(spec) for spec in specs]
        # Choosing may be wrong, so what it sees need not be of one moment; but a group's grants are replayed.
        look = self._db.read if any(spec.group for spec in specs) else self._db.look
        look(lambda conn: self._look(conn, requests))
        answers: dict[int, Selection] = {}
        waiting = requests
        # Each round with a loser means that somebody else won: with every host visited twice, all is decided.
        for _round in range(2 * len(self._view) + 8):
            self._picked = chosen = self._choose(waiting)
            doubtful = [request for request in waiting if id(request) not in chosen]
            if doubtful:
                chosen = chosen | self._verify(doubtful, requests, answers)
            if not chosen:
                break
            picks = [(request, chosen[id(request)]) for request in waiting if id(request) in chosen]
            answers |= self._decide(picks)
            waiting = [request for request in waiting if id(request) not in answers]
            if not waiting:
                break
        for request in waiting:
            if id(request) not in answers:
                reason = "No valid host was found. Other requests won every host that was tried; try again."
                answers[id(request)] = Selection(request.spec.consumer, fall_overs=request.fall_overs, reason=reason)
        selections = [answers[id(request)] for request in requests]
        _count(selections)
        return selections

    # -- looking

    def _look(self, conn: sa.Connection, requests: Sequence[Request]) -> None:
        """Bring the view up to date, and learn where the groups and the hinted servers are."""
        self._view.refresh(conn)
        self._look_at_groups(conn, requests)
        self._look_at_hints(conn, requests)

    def _look_at_hints(self, conn: sa.Connection, requests: Sequence[Request]) -> None:
        hinted = {uuid for request in requests for uuid in _hinted(request)}
        if not hinted:
            return
        where = hosts.hosts_of_instances(conn, sorted(hinted))
        for request in requests:
            request.same_hosts = _hint_hosts(request, "same_host", where)
            request.different_hosts = _hint_hosts(request, "different_host", where)

    def _look_at_groups(self, conn: sa.Connection, requests: Sequence[Request]) -> None:
        ids = sorted({request.group_id for request in requests if request.group_id is not None})
        if not ids:
            return
        members = grants.occupancy(conn, ids)
        homes = sorted(
            {r.group_id for r in requests if r.spec.group and r.spec.group.policy == AFFINITY and r.group_id}
        )
        if homes:
            # An affinity group's lost grants would make it look at home in several places: replay them.
            ledger = grants.read_ledger(conn, (), homes)
            members.update(_members(ledger, Verdict(ledger), homes))
        _share_members(requests, members)
        moving = {r.spec.consumer: r.spec.migration for r in requests if r.spec.migration and r.spec.group}
        if moving:
            movers = grants.read_movers(conn, moving)
            for request in requests:
                request.mover = movers.get(request.spec.consumer)

    def _verify(
        self,
        doubtful: Sequence[Request],
        requests: Sequence[Request],
        answers: dict[int, Selection],
    ) -> dict[int, int]:
        """Look again at everything for requests that found no host; those that find none still are answered "no"."""
        groups = sorted({request.group_id for request in requests if request.group_id is not None})
        undecided = [request.spec for request in requests if id(request) not in answers]
        replaced = {(spec.consumer, spec.migration) for spec in undecided}
        # What this round chose already is not written yet: take those places again in the fresh view.
        taken = [(request, self._picked[id(request)]) for request in requests if id(request) in self._picked]

        def read(conn: sa.Connection) -> tuple[Ledger, Verdict]:
            self._look_at_hints(conn, requests)
            return self._view.verify(conn, groups, replaced)

        ledger, verdict = self._db.read(read)
        _share_members(requests, _members(ledger, verdict, groups))
        for request, node_id in taken:
            self._take(request, node_id)
        self._chooser.look_again()
        found: dict[int, int] = {}
        for request in doubtful:
            request.visited.clear()
            found_node = self._pick(request)
            if found_node is None:
                answers[id(request)] = self._no(request)
            else:
                found[id(request)] = found_node
        return found

    # -- choosing

    def _choose(self, waiting: Sequence[Request]) -> dict[int, int]:
        """Return id(request) -> node id, for those that the view has a host for; each pick is booked for the next."""
        self._chooser.look_again()
        chosen: dict[int, int] = {}
        for request in waiting:
            node_id = self._pick(request)
            if node_id is not None:
                chosen[id(request)] = node_id
        return chosen

    def _pick(self, request: Request) -> int | None:
        row = self._chooser.choose(request)
        if row is None:
            return None
        node_id = self._view.hosts[row].books.id
        self._take(request, node_id)
        return node_id

    def _take(self, request: Request, node_id: int) -> None:
        row = self._view.index.get(node_id)
        if row is not None:
            self._view.take(row, request.amounts)
        if request.spec.group is not None:
            request.members[node_id] += 1

    def _no(self, request: Request) -> Selection:
        """Say no, with what each filter turned away of what the filters before it had left."""
        left = np.ones(len(self._view), dtype=bool)
        turned_away = []
        for each in self._filters:
            passing = each.passes(self._view, request)
            if passing is not None:
                lost = int((left & ~passing).sum())
                if lost:
                    turned_away.append((lost, each.explain(request)))
                left &= passing
        reason = explain.sentence(len(self._view), turned_away)
        with continuing(request.spec.request_id):
            LOG.info("no valid host instance=%s fall_overs=%d", request.spec.consumer, request.fall_overs)
        return Selection(request.spec.consumer, fall_overs=request.fall_overs, reason=reason)

    # -- deciding

    def _decide(self, picks: Sequence[tuple[Request, int]]) -> dict[int, Selection]:
        """Write grants, reread, judge; return the answers of those that are decided, and prepare the rest."""
        wanted = [
            GrantRequest(r.spec.consumer, r.spec.migration, node_id, r.spec.resources, r.group_id)
            for r, node_id in picks
        ]
        tickets = self._write(wanted)
        nodes = {node_id for _request, node_id in picks}
        groups = {request.group_id for request, _node in picks if request.group_id is not None}
        ledger = self._reread(nodes, groups)
        verdict = Verdict(ledger)
        written = {(g.consumer, g.migration): g for g in ledger.grants}
        answers: dict[int, Selection] = {}
        lost: list[Grant] = []
        for (request, node_id), ticket in zip(picks, tickets, strict=True):
            grant = written.get((request.spec.consumer, request.spec.migration))
            if ticket is None:
                self._view.forget(node_id)
            elif grant is None or (grant.node_id, grant.ticket) != (node_id, ticket):
                answers[id(request)] = self._superseded(request)
            elif verdict.holds(grant):
                answers[id(request)] = self._won(request, grant)
            else:
                lost.append(grant)
                request.visited.add(node_id)
                request.fall_overs += 1
        if lost:
            self._db.write(lambda conn: grants.remove(conn, lost))
        self._view.correct(ledger, verdict, nodes)
        _correct_members([request for request, _node in picks], _members(ledger, verdict, sorted(groups)), nodes)
        return answers

    def _write(self, wanted: Sequence[GrantRequest]) -> list[int | None]:
        """Write grants; that a consumer has an older one is so rare that it is found out by trying."""
        lifetime = self._conf.scheduler.grant_lifetime
        try:
            return self._db.write(lambda conn: grants.write(conn, wanted, lifetime, replacing=False))
        except db_exception.DBDuplicateEntry:
            return self._db.write(lambda conn: grants.write(conn, wanted, lifetime))

    def _reread(self, nodes: set[int], groups: set[int]) -> Ledger:
        """Read what is needed to judge the grants just written; for a lone request, in one round trip."""
        ledger = None
        if len(nodes) <= _FEW and not groups:
            ledger = self._db.look(lambda conn: grants.read_few(conn, nodes))
        return ledger or self._db.read(lambda conn: grants.read_ledger(conn, nodes, groups))

    def _won(self, request: Request, grant: Grant) -> Selection:
        host = self._view.hosts[self._view.index[grant.node_id]]
        return Selection(
            request.spec.consumer, grant.id, grant.node_id, host.host, host.node, host.server, request.fall_overs
        )

    def _superseded(self, request: Request) -> Selection:
        """The consumer was scheduled again while this went on; its newer grant counts, and nobody waits for this."""
        return Selection(request.spec.consumer, fall_overs=request.fall_overs, superseded=True)


def _count(selections: Sequence[Selection]) -> None:
    won = sum(selection.grant_id is not None for selection in selections)
    superseded = sum(selection.superseded for selection in selections)
    metrics.BATCH_SIZE.observe(len(selections))
    metrics.PLACEMENTS.labels("won").inc(won)
    metrics.PLACEMENTS.labels("superseded").inc(superseded)
    metrics.PLACEMENTS.labels("no_valid_host").inc(len(selections) - won - superseded)
    metrics.FALL_OVERS.inc(sum(selection.fall_overs for selection in selections))


def _plugins(namespace: str, names: Sequence[str]) -> list[type]:
    manager: named.NamedExtensionManager[type] = named.NamedExtensionManager(
        namespace,
        list(names),
        name_order=True,
        on_load_failure_callback=_refuse,
        on_missing_entrypoints_callback=_missing,
    )
    return [extension.plugin for extension in manager]


def _missing(names: Iterable[str]) -> None:
    raise ValueError(f"there is no filter or weigher {', '.join(sorted(names))}; see [scheduler] in the configuration")


def _refuse(_manager: object, entry_point: object, error: BaseException) -> None:
    raise ValueError(f"cannot load {entry_point}: {error}")


def _hinted(request: Request) -> list[str]:
    hints = request.spec.hints
    return [*hints.get("same_host", ()), *hints.get("different_host", ())]


def _hint_hosts(request: Request, hint: str, where: dict[str, str]) -> frozenset[str] | None:
    named_by_hint = request.spec.hints.get(hint)
    return frozenset(where[uuid] for uuid in named_by_hint if uuid in where) if named_by_hint else None


def _share_members(requests: Sequence[Request], members: dict[int, Counter[int]]) -> None:
    for request in requests:
        if request.group_id in members:
            request.members = members[request.group_id]


def _correct_members(requests: Sequence[Request], members: dict[int, Counter[int]], node_ids: Iterable[int]) -> None:
    """Take over what a reread of the nodes has found; of an affinity group it has found all there is."""
    known = {request.group_id: request for request in requests if request.group_id in members}
    for group_id, request in known.items():
        found, before = members[group_id or 0], request.members
        if request.spec.group is None or request.spec.group.policy != AFFINITY:
            kept = before - Counter({node_id: before[node_id] for node_id in node_ids})
            found = kept + Counter({node_id: found[node_id] for node_id in node_ids})
        _share_members(requests, {group_id or 0: found})


def _members(ledger: Ledger, verdict: Verdict, group_ids: Sequence[int]) -> dict[int, Counter[int]]:
    """Count the groups' members by node: allocated, or with a grant that holds."""
    found: dict[int, Counter[int]] = {}
    for group_id in group_ids:
        group = ledger.groups.get(group_id)
        counts: Counter[int] = Counter(group.members) if group else Counter()
        found[group_id] = counts
    for grant in ledger.grants:
        if grant.group_id in found and verdict.holds(grant):
            found[grant.group_id][grant.node_id] += 1
    return found

# SPDX-License-Identifier: Apache-2.0
"""The scheduler's view: all hosts as arrays, good enough to choose from and never more than that.

The naive way, a query for all hosts at each decision, costs in proportion to hosts that did not change. The view keeps
them in memory and reads what was touched since its last look. It may be wrong: others write grants at this moment,
and losers' grants are counted until they are removed. That costs a fall-over at worst, since the reread decides; and
"no valid host" is only said from ``verify``, which reads everything afresh from one snapshot and replays it.

Only the placer's thread uses a view; it needs no lock.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from oslo_config import cfg
from oslo_log import log

from nova_lite.db import grants, hosts
from nova_lite.db.hosts import Aggregate, Booked, Host
from nova_lite.db.session import Database
from nova_lite.objects.ledger import Ledger
from nova_lite.objects.resources import Resources
from nova_lite.scheduler.verdict import Verdict

LOG = log.getLogger(__name__)

Amounts = NDArray[np.int64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]

# Seconds within which nearly every transaction that touches a node has committed.
_COMMIT_TIME = 0.1


def amounts(resources: Resources) -> Amounts:
    """Return [vcpus, memory_mb, disk_gb] as an array."""
    return np.array((resources.vcpus, resources.memory_mb, resources.disk_gb), dtype=np.int64)


class View:
    """Row i of every array is one compute node.

    capacity, booked, total: (n, 3) of vcpus, MiB, GiB; booked is allocations and grants. up: alive by the database's
    clock. ``generation`` changes with everything but booked, instances and building, so that what is computed from
    the rest can be kept.
    """

    def __init__(self, conf: cfg.ConfigOpts, db: Database) -> None:
        self._conf = conf
        self._db = db
        self._looked_at: datetime | None = None
        self._next_reload = 0.0
        self._next_liveness = 0.0
        self._next_overlap = 0.0
        self._silent: set[int] = set()
        self._aggregates_revision: object = None
        self._aggregates: list[Aggregate] = []
        self.generation = 0
        self._replace([])

    def __len__(self) -> int:
        return len(self.hosts)

    def refresh(self, conn: sa.Connection) -> None:
        """Bring the view up to date from the snapshot: two statements, more by what changed."""
        if time.monotonic() >= self._next_reload:
            self._looked_at = None
        moment = hosts.moment(conn)
        if self._looked_at is None:
            self._next_reload = time.monotonic() + self._conf.scheduler.view_reload_interval
            self._replace(hosts.read(conn))
        else:
            self._update_booked(conn, hosts.booked_since(conn, self._looked_at, self._overlap()))
        self._looked_at = moment.at
        self._refresh_aggregates(conn, moment.aggregates)
        if time.monotonic() >= self._next_liveness:
            self._next_liveness = time.monotonic() + self._conf.scheduler.liveness_interval
            silent = hosts.silent_services(conn, self._conf.service_down_time)
            if silent != self._silent:
                self._silent = silent
                self._judge_liveness()

    def _overlap(self) -> float:
        """Return how far before the last look changes are read again.

        A transaction that took long to commit shows up late. Looking far back each time would read each change again
        and again, so that is done once a second; in between, what most commits need is enough.
        """
        if time.monotonic() < self._next_overlap:
            return min(_COMMIT_TIME, self._conf.scheduler.view_overlap)
        self._next_overlap = time.monotonic() + 1.0
        return float(self._conf.scheduler.view_overlap)

    def _update_booked(self, conn: sa.Connection, changed: Sequence[Booked]) -> None:
        rows = [self.index.get(booked.node_id, -1) for booked in changed]
        known = [(i, booked) for i, booked in zip(rows, changed, strict=True) if i >= 0]
        if known:
            where = [i for i, _booked in known]
            values = np.array([booked for _i, booked in known], dtype=np.int64)
            self.booked[where] = values[:, 2:5]
            self.building[where] = values[:, 5]
            self.failed_builds[where] = values[:, 6]
        stale = [
            booked.node_id
            for i, booked in zip(rows, changed, strict=True)
            if i < 0 or self.hosts[i].revision != booked.revision
        ]
        if stale:
            self._update(hosts.read(conn, stale))

    def _refresh_aggregates(self, conn: sa.Connection, revision: object) -> None:
        if revision != self._aggregates_revision:
            self._aggregates_revision = revision
            self._aggregates = hosts.read_aggregates(conn)
            self._map_aggregates()

    def _replace(self, found: Sequence[Host]) -> None:
        self.hosts = list(found)
        self.index = {host.books.id: i for i, host in enumerate(self.hosts)}
        count = len(self.hosts)
        self.capacity = np.zeros((count, 3), dtype=np.int64)
        self.booked = np.zeros((count, 3), dtype=np.int64)
        self.total = np.zeros((count, 3), dtype=np.int64)
        self.building = np.zeros(count, dtype=np.int64)
        self.failed_builds = np.zeros(count, dtype=np.int64)
        for i, host in enumerate(self.hosts):
            self._set_row(i, host)
        self._judge_liveness()
        self._map_aggregates()

    def _update(self, found: Sequence[Host]) -> None:
        if any(host.books.id not in self.index for host in found):
            known = {host.books.id: host for host in self.hosts}
            known.update((host.books.id, host) for host in found)
            pending = self.booked, self.index
            self._replace(list(known.values()))
            # Rows that did not change keep what this scheduler has learnt of them by rereading.
            fresh = {host.books.id for host in found}
            for node_id, i in pending[1].items():
                if node_id not in fresh:
                    self.booked[self.index[node_id]] = pending[0][i]
            return
        alive_changed = False
        for host in found:
            i = self.index[host.books.id]
            alive_changed = alive_changed or _standing(self.hosts[i]) != _standing(host)
            self.hosts[i] = host
            self._set_row(i, host)
        if alive_changed:
            self._judge_liveness()

    def _set_row(self, i: int, host: Host) -> None:
        self.capacity[i] = amounts(host.books.capacity)
        self.booked[i] = amounts(host.books.used + host.pending)
        self.total[i] = amounts(host.total)
        self.building[i] = host.building
        self.failed_builds[i] = host.failed_builds

    def _judge_liveness(self) -> None:
        self.generation += 1
        self.up: Mask = np.array(
            [not host.forced_down and host.service_id not in self._silent for host in self.hosts], dtype=bool
        )
        self.enabled: Mask = np.array([not host.disabled for host in self.hosts], dtype=bool)

    def _map_aggregates(self) -> None:
        self.generation += 1
        self._of_host: dict[str, list[Aggregate]] = defaultdict(list)
        for aggregate in self._aggregates:
            for host in aggregate.hosts:
                self._of_host[host].append(aggregate)

    def aggregates_of(self, host: str) -> list[Aggregate]:
        """Return the aggregates that the host is in."""
        return self._of_host.get(host, [])

    def take(self, i: int, taken: Amounts) -> None:
        """Book amounts on row i until a reread says better."""
        self.booked[i] += taken
        self.building[i] += 1

    def forget(self, node_id: int) -> None:
        """Remove a node that turned out to be gone."""
        if node_id in self.index:
            self._replace([host for host in self.hosts if host.books.id != node_id])

    def correct(self, ledger: Ledger, verdict: Verdict, node_ids: Iterable[int]) -> None:
        """Set the nodes to what a reread found: their capacity, their allocations and the grants that hold."""
        for node_id in node_ids:
            i = self.index.get(node_id)
            node = ledger.nodes.get(node_id)
            if i is not None and node is not None:
                self.capacity[i] = amounts(node.capacity)
                self.booked[i] = amounts(verdict.booked(node_id))

    def verify(
        self, conn: sa.Connection, group_ids: Iterable[int], replaced: Collection[tuple[str, str]] = ()
    ) -> tuple[Ledger, Verdict]:
        """Read everything afresh from one snapshot and replay it; the view is exact for that moment.

        :param replaced: (consumer, migration) of those who ask. What is left of their older grants ends with the
            next that is written for them, and so must not take their place from them.
        """
        self._looked_at = None
        self._next_liveness = 0.0
        self.refresh(conn)
        ledger = grants.read_whole_ledger(conn, group_ids)
        others = tuple(grant for grant in ledger.grants if (grant.consumer, grant.migration) not in replaced)
        ledger = Ledger(ledger.nodes, ledger.groups, others)
        verdict = Verdict(ledger)
        self.correct(ledger, verdict, ledger.nodes)
        return ledger, verdict


def _standing(host: Host) -> tuple[object, ...]:
    """What of a host takes part in ``generation``."""
    return (
        host.disabled,
        host.forced_down,
        host.service_id,
        host.total,
        host.hypervisor_type,
        host.architectures,
        host.vm_modes,
    )

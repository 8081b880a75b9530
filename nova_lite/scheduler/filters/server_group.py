# SPDX-License-Identifier: Apache-2.0
"""Required server groups: anti-affinity keeps members apart, affinity keeps them together.

A first guess from what is known; the verdict on the written grant decides.
"""

from __future__ import annotations

import numpy as np

from nova_lite.objects.group import AFFINITY, ANTI_AFFINITY
from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, Rows, View


class ServerGroupFilter(Filter):
    depends_on_usage = True

    def passes(self, view: View, request: Request) -> Mask | None:
        group = request.spec.group
        if group is None or not group.is_required or not request.members:
            return None
        if group.policy == ANTI_AFFINITY:
            passing = np.ones(len(view), dtype=bool)
            full = (node_id for node_id, count in request.others().items() if count >= group.max_server_per_host)
            passing[[view.index[node_id] for node_id in full if node_id in view.index]] = False
            return passing
        home = [node_id for node_id, count in request.others().items() if count]
        if not home:
            return None
        passing = np.zeros(len(view), dtype=bool)
        if len(home) == 1 and home[0] in view.index:
            passing[view.index[home[0]]] = True
        return passing

    def passes_rows(self, view: View, rows: Rows, request: Request) -> Mask | None:
        group = request.spec.group
        if group is None or not group.is_required or not request.members:
            return None
        others = request.others()
        members = np.array([others.get(view.hosts[row].books.id, 0) for row in rows.tolist()], dtype=np.int64)
        if group.policy == ANTI_AFFINITY:
            return members < group.max_server_per_host
        total = sum(others.values())
        return members == total if total else None

    def explain(self, request: Request) -> str:
        group = request.spec.group
        if group is not None and group.policy == AFFINITY:
            return "not the home of the affinity group"
        most = group.max_server_per_host if group else 1
        return f"already with {most} member{'s' * (most > 1)} of the anti-affinity group"

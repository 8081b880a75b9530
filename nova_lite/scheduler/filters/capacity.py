# SPDX-License-Identifier: Apache-2.0
"""A host must have room: total x ratio - reserved, less what is booked; and no server is larger than its host."""

from __future__ import annotations

import numpy as np

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, Rows, View


class CapacityFilter(Filter):
    depends_on_usage = True

    def passes(self, view: View, request: Request) -> Mask | None:
        room = np.all(view.booked + request.amounts <= view.capacity, axis=1)
        return np.logical_and(room, np.all(request.amounts <= view.total, axis=1))

    def passes_rows(self, view: View, rows: Rows, request: Request) -> Mask | None:
        most = np.minimum(view.capacity[rows] - view.booked[rows], view.total[rows])
        return np.all(request.amounts <= most, axis=1)

    def explain(self, request: Request) -> str:
        r = request.spec.resources
        return f"without room for {r.vcpus} VCPU, {r.memory_mb} MiB of memory and {r.disk_gb} GiB of disk"

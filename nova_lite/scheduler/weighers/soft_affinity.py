# SPDX-License-Identifier: Apache-2.0
"""Members of the server's soft-affinity group on the host; more is better."""

from __future__ import annotations

import numpy as np

from nova_lite.objects.group import SOFT_AFFINITY
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import View
from nova_lite.scheduler.weighers import Rows, Weigher, Weights


class SoftAffinityWeigher(Weigher):
    multiplier = "soft_affinity_weight_multiplier"

    def raw(self, view: View, rows: Rows, request: Request) -> Weights | None:
        group = request.spec.group
        if group is None or group.policy != SOFT_AFFINITY or not request.members:
            return None
        return members_on(view, rows, request)


def members_on(view: View, rows: Rows, request: Request) -> Weights:
    """Return how many members of the request's group each row has."""
    return np.array([request.members.get(view.hosts[row].books.id, 0) for row in rows.tolist()], dtype=float)

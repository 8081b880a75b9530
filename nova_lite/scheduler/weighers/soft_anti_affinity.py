# SPDX-License-Identifier: Apache-2.0
"""Members of the server's soft-anti-affinity group on the host; fewer is better."""

from __future__ import annotations

from nova_lite.objects.group import SOFT_ANTI_AFFINITY
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import View
from nova_lite.scheduler.weighers import Rows, Weigher, Weights
from nova_lite.scheduler.weighers.soft_affinity import members_on


class SoftAntiAffinityWeigher(Weigher):
    multiplier = "soft_anti_affinity_weight_multiplier"

    def raw(self, view: View, rows: Rows, request: Request) -> Weights | None:
        group = request.spec.group
        if group is None or group.policy != SOFT_ANTI_AFFINITY or not request.members:
            return None
        return -members_on(view, rows, request)

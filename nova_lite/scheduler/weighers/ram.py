# SPDX-License-Identifier: Apache-2.0
"""Free memory."""

from __future__ import annotations

from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import View
from nova_lite.scheduler.weighers import Rows, Weigher, Weights


class RamWeigher(Weigher):
    multiplier = "ram_weight_multiplier"
    packs = True

    def raw(self, view: View, rows: Rows, request: Request) -> Weights | None:
        return (view.capacity[rows, 1] - view.booked[rows, 1]).astype(float)

# SPDX-License-Identifier: Apache-2.0
"""Builds in progress on the host; the multiplier is negative, so that fewer is better."""

from __future__ import annotations

from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import View
from nova_lite.scheduler.weighers import Rows, Weigher, Weights


class IoLoadWeigher(Weigher):
    multiplier = "io_load_weight_multiplier"

    def raw(self, view: View, rows: Rows, request: Request) -> Weights | None:
        return view.building[rows].astype(float)

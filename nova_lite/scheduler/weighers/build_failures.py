# SPDX-License-Identifier: Apache-2.0
"""Builds that failed in a row on the host; fewer is better."""

from __future__ import annotations

from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import View
from nova_lite.scheduler.weighers import Rows, Weigher, Weights


class BuildFailuresWeigher(Weigher):
    multiplier = "build_failures_weight_multiplier"

    def raw(self, view: View, rows: Rows, request: Request) -> Weights | None:
        failed = view.failed_builds[rows]
        return -failed.astype(float) if failed.any() else None

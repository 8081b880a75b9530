# SPDX-License-Identifier: Apache-2.0
"""Hosts whose compute service is down or disabled get nothing."""

from __future__ import annotations

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View


class ComputeFilter(Filter):
    def passes(self, view: View, request: Request) -> Mask | None:
        return view.up & view.enabled

    def explain(self, request: Request) -> str:
        return "down or disabled"

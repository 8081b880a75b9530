# SPDX-License-Identifier: Apache-2.0
"""A server that asks for an availability zone gets a host of that zone.

A zone is the metadata key availability_zone of an aggregate; hosts in no such aggregate are in
[api]default_availability_zone.
"""

from __future__ import annotations

import numpy as np

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View


class AvailabilityZoneFilter(Filter):
    def passes(self, view: View, request: Request) -> Mask | None:
        wanted = request.spec.availability_zone
        if not wanted:
            return None
        default = self._conf.api.default_availability_zone
        return np.array([wanted in (_zones(view, host.host) or {default}) for host in view.hosts], dtype=bool)

    def explain(self, request: Request) -> str:
        return f"not in availability zone {request.spec.availability_zone}"


def _zones(view: View, host: str) -> set[str]:
    return {aggregate.metadata.get("availability_zone", "") for aggregate in view.aggregates_of(host)} - {""}

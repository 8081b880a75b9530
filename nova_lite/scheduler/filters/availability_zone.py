# SPDX-License-Identifier: Apache-2.0
"""A server that asks for an availability zone gets a host of that zone.

A zone is the metadata key availability_zone of an aggregate; hosts in no such aggregate are in
[api]default_availability_zone.
"""

from __future__ import annotations

import numpy as np
from oslo_config import cfg

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View


class AvailabilityZoneFilter(Filter):
    def passes(self, view: View, request: Request) -> Mask | None:
        wanted = request.spec.availability_zone
        if not wanted:
            return None
        return np.array([wanted in zones_of(view, host.host) for host in view.hosts], dtype=bool)

    def explain(self, request: Request) -> str:
        return f"not in availability zone {request.spec.availability_zone}"


def zones_of(view: View, host: str) -> set[str]:
    """Return the zones that the host is in."""
    named = {aggregate.metadata.get("availability_zone", "") for aggregate in view.aggregates_of(host)} - {""}
    return named or {cfg.CONF.api.default_availability_zone}

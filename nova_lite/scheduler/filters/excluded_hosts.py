# SPDX-License-Identifier: Apache-2.0
"""Hosts on which this server was already tried, and failed, are not tried again."""

from __future__ import annotations

import numpy as np

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View


class ExcludedHostsFilter(Filter):
    def passes(self, view: View, request: Request) -> Mask | None:
        excluded = request.spec.excluded_hosts
        if not excluded:
            return None
        return np.array([host.host not in excluded for host in view.hosts], dtype=bool)

    def explain(self, request: Request) -> str:
        return f"where an earlier attempt failed ({', '.join(request.spec.excluded_hosts)})"

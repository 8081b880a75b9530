# SPDX-License-Identifier: Apache-2.0
"""The hint same_host: only hosts of the servers that it names."""

from __future__ import annotations

import numpy as np

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View


class SameHostFilter(Filter):
    def passes(self, view: View, request: Request) -> Mask | None:
        wanted = request.same_hosts
        if wanted is None:
            return None
        return np.array([host.host in wanted for host in view.hosts], dtype=bool)

    def explain(self, request: Request) -> str:
        return "not a host of the servers named by the hint same_host"

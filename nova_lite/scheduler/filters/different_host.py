# SPDX-License-Identifier: Apache-2.0
"""The hint different_host: no host of the servers that it names."""

from __future__ import annotations

import numpy as np

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View


class DifferentHostFilter(Filter):
    def passes(self, view: View, request: Request) -> Mask | None:
        unwanted = request.different_hosts
        if unwanted is None:
            return None
        return np.array([host.host not in unwanted for host in view.hosts], dtype=bool)

    def explain(self, request: Request) -> str:
        return "with a server named by the hint different_host"

# SPDX-License-Identifier: Apache-2.0
"""The host or node that an administrator named is the only candidate, and still has to pass everything else."""

from __future__ import annotations

import numpy as np

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View


class RequestedHostFilter(Filter):
    def passes(self, view: View, request: Request) -> Mask | None:
        host, node = request.spec.requested_host, request.spec.requested_node
        if not host and not node:
            return None
        return np.array([(not host or h.host == host) and (not node or h.node == node) for h in view.hosts], dtype=bool)

    def explain(self, request: Request) -> str:
        asked = filter(None, (request.spec.requested_host, request.spec.requested_node))
        return f"not the requested {'/'.join(asked)}"

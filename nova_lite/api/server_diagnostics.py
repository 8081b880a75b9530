# SPDX-License-Identifier: Apache-2.0
"""The diagnostics of a running server, asked of its hypervisor: up to 2.47 under its own names, then in one shape."""

from __future__ import annotations

import falcon

from nova_lite import exception
from nova_lite.api import server_lookup
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.services import Services
from nova_lite.api.views import diagnostics as views
from nova_lite.db import instances
from nova_lite.db.instances import Instance
from nova_lite.objects import instance as states
from nova_lite.objects.diagnostics import Diagnostics

_ONE_SHAPE = Version(2, 48)
_STATE_NAMES = {
    states.NOSTATE: "pending",
    states.POWER_PAUSED: "paused",
    states.SHUTDOWN: "shutdown",
    states.CRASHED: "crashed",
    states.POWER_SUSPENDED: "suspended",
}


class ServerDiagnostics:
    """/servers/{server_id}/diagnostics"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Show what a running server uses."""
        row = server_lookup.find(self._services, req, server_id, "os-server-diagnostics")
        server = self._services.db.read(lambda conn: server_lookup.server_of(conn, self._services, row))
        if row.power_state != states.RUNNING:
            raise _not_running(row, row.power_state)
        try:
            found: Diagnostics = self._services.compute.diagnostics(req.nova, server, instances.to_object(row))
        except exception.DomainNotFound:
            raise _not_running(row, states.NOSTATE)
        if found.power_state != states.RUNNING:
            raise _not_running(row, found.power_state)
        resp.media = views.fixed(row, found) if req.version >= _ONE_SHAPE else views.own_names(found)


def _not_running(row: Instance, power_state: int) -> exception.InstanceInvalidState:
    state = _STATE_NAMES.get(power_state, str(power_state))
    return exception.InstanceInvalidState(action="get_diagnostics", uuid=row.uuid, attribute="power_state", state=state)


ROUTES = [("/servers/{server_id}/diagnostics", ServerDiagnostics)]

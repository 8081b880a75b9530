# SPDX-License-Identifier: Apache-2.0
"""The addresses of a server, by network."""

from __future__ import annotations

import falcon

from nova_lite import exception
from nova_lite.api import server_lookup
from nova_lite.api.request import Request
from nova_lite.api.services import Services
from nova_lite.api.views import servers as views


class Addresses:
    """/servers/{server_id}/ips"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """List the server's addresses."""
        row = server_lookup.find(self._services, req, server_id, "ips:index")
        resp.media = {"addresses": views.addresses(row, extended=False)}


class NetworkAddresses:
    """/servers/{server_id}/ips/{network}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str, network: str) -> None:
        """List the server's addresses on one network."""
        row = server_lookup.find(self._services, req, server_id, "ips:show")
        found = views.addresses(row, extended=False)
        if network not in found:
            raise exception.NotFound("Instance is not a member of specified network")
        resp.media = {network: found[network]}


ROUTES = [
    ("/servers/{server_id}/ips", Addresses),
    ("/servers/{server_id}/ips/{network}", NetworkAddresses),
]

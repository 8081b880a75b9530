# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/os-server-password: a password that a guest made up, encrypted for its key pair.

Guests hand it in at a metadata service, and there is none here, since they read the config drive: the answer is what
Nova says of a guest that has not done so.
"""

from __future__ import annotations

import falcon

from nova_lite.api import server_lookup
from nova_lite.api.request import Request
from nova_lite.api.services import Services


class ServerPassword:
    """/servers/{server_id}/os-server-password"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Show the password: an empty one."""
        server_lookup.find(self._services, req, server_id, "os-server-password:show")
        resp.media = {"password": ""}

    def on_delete(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Forget the password, of which nothing is known."""
        server_lookup.find(self._services, req, server_id, "os-server-password:clear")
        resp.status = falcon.HTTP_204


ROUTES: list[tuple[str, type]] = [("/servers/{server_id}/os-server-password", ServerPassword)]

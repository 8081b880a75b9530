# SPDX-License-Identifier: Apache-2.0
"""What is attached to a server: volumes, of which there are none here, and its port on the built-in network.

A server's port comes and goes with the server, so none can be attached or detached.
"""

from __future__ import annotations

from typing import Any, NoReturn

import falcon

from nova_lite import exception
from nova_lite.api import server_lookup
from nova_lite.api.request import Request
from nova_lite.api.services import Services
from nova_lite.api.views import interfaces as views
from nova_lite.db.instances import Instance


class VolumeAttachments:
    """/servers/{server_id}/os-volume_attachments"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """List the server's volumes."""
        server_lookup.find(self._services, req, server_id, "os-volumes-attachments:index")
        resp.media = {"volumeAttachments": []}


class Interfaces:
    """/servers/{server_id}/os-interface"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """List the server's ports."""
        row = server_lookup.find(self._services, req, server_id, "os-attach-interfaces:list")
        resp.media = {"interfaceAttachments": views.interfaces(req, row)}

    def on_post(self, req: Request, resp: falcon.Response, server_id: str) -> NoReturn:
        """Refuse to attach a port."""
        server_lookup.find(self._services, req, server_id, "os-attach-interfaces:create")
        raise exception.NotImplementedHere(what="attaching interfaces: a server has the port that it was created with")


class Interface:
    """/servers/{server_id}/os-interface/{port_id}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str, port_id: str) -> None:
        """Show one of the server's ports."""
        row = server_lookup.find(self._services, req, server_id, "os-attach-interfaces:show")
        resp.media = {"interfaceAttachment": self._of(req, row, port_id)}

    def on_delete(self, req: Request, resp: falcon.Response, server_id: str, port_id: str) -> NoReturn:
        """Refuse to detach a port."""
        row = server_lookup.find(self._services, req, server_id, "os-attach-interfaces:delete")
        self._of(req, row, port_id)
        raise exception.NotImplementedHere(what="detaching interfaces: a server keeps its port until it is deleted")

    def _of(self, req: Request, row: Instance, port_id: str) -> dict[str, Any]:
        found = [shown for shown in views.interfaces(req, row) if shown["port_id"] == port_id.lower()]
        if not found:
            raise exception.NotFound(f"Port {port_id[:64]} not found on server {row.uuid}.")
        return found[0]


ROUTES = [
    ("/servers/{server_id}/os-volume_attachments", VolumeAttachments),
    ("/servers/{server_id}/os-interface", Interfaces),
    ("/servers/{server_id}/os-interface/{port_id}", Interface),
]

# SPDX-License-Identifier: Apache-2.0
"""What is attached to a server: volumes and shares, of which there are none here, and its port on the built-in network.

A server's port comes and goes with the server, so none can be attached or detached.
"""

from __future__ import annotations

from typing import Any, NoReturn

import falcon

from nova_lite import exception
from nova_lite.api import server_lookup
from nova_lite.api.request import Request, since
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

    def on_post(self, req: Request, resp: falcon.Response, server_id: str) -> NoReturn:
        """Refuse to attach a volume."""
        server_lookup.find(self._services, req, server_id, "os-volumes-attachments:create")
        raise exception.NotImplementedHere(what="attaching volumes: there is no block storage service")


class VolumeAttachment:
    """/servers/{server_id}/os-volume_attachments/{volume_id}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str, volume_id: str) -> NoReturn:
        """Find that no volume is attached."""
        self._none(req, server_id, volume_id, "show")

    def on_put(self, req: Request, resp: falcon.Response, server_id: str, volume_id: str) -> NoReturn:
        """Find that no volume is attached that could be swapped."""
        self._none(req, server_id, volume_id, "update")

    def on_delete(self, req: Request, resp: falcon.Response, server_id: str, volume_id: str) -> NoReturn:
        """Find that no volume is attached."""
        self._none(req, server_id, volume_id, "delete")

    def _none(self, req: Request, server_id: str, volume_id: str, action: str) -> NoReturn:
        row = server_lookup.find(self._services, req, server_id, f"os-volumes-attachments:{action}")
        raise exception.NotFound(f"Instance {row.uuid} is not attached to volume {volume_id[:64]}.")


class Shares:
    """/servers/{server_id}/shares"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @since("2.97")
    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """List the server's shares."""
        server_lookup.find(self._services, req, server_id, "os-server-shares:index")
        resp.media = {"shares": []}

    @since("2.97")
    def on_post(self, req: Request, resp: falcon.Response, server_id: str) -> NoReturn:
        """Refuse to attach a share."""
        server_lookup.find(self._services, req, server_id, "os-server-shares:create")
        raise exception.NotImplementedHere(what="attaching shares: there is no shared file system service")


class Share:
    """/servers/{server_id}/shares/{share_id}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @since("2.97")
    def on_get(self, req: Request, resp: falcon.Response, server_id: str, share_id: str) -> NoReturn:
        """Find that no share is attached."""
        self._none(req, server_id, share_id, "show")

    @since("2.97")
    def on_delete(self, req: Request, resp: falcon.Response, server_id: str, share_id: str) -> NoReturn:
        """Find that no share is attached."""
        self._none(req, server_id, share_id, "delete")

    def _none(self, req: Request, server_id: str, share_id: str, action: str) -> NoReturn:
        row = server_lookup.find(self._services, req, server_id, f"os-server-shares:{action}")
        raise exception.NotFound(f"Instance {row.uuid} is not attached to share {share_id[:64]}.")


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
    ("/servers/{server_id}/os-volume_attachments/{volume_id}", VolumeAttachment),
    ("/servers/{server_id}/shares", Shares),
    ("/servers/{server_id}/shares/{share_id}", Share),
    ("/servers/{server_id}/os-interface", Interfaces),
    ("/servers/{server_id}/os-interface/{port_id}", Interface),
]

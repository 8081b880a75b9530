# SPDX-License-Identifier: Apache-2.0
"""What is attached to a server from other services. There are none here, so that these lists are empty."""

from __future__ import annotations

import falcon

from nova_lite.api import server_lookup
from nova_lite.api.request import Request
from nova_lite.api.services import Services


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
        server_lookup.find(self._services, req, server_id, "os-attach-interfaces:list")
        resp.media = {"interfaceAttachments": []}


ROUTES = [
    ("/servers/{server_id}/os-volume_attachments", VolumeAttachments),
    ("/servers/{server_id}/os-interface", Interfaces),
]

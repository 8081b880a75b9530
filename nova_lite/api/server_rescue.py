# SPDX-License-Identifier: Apache-2.0
"""Rescuing a server that does not boot any more: from an image that the user names, or the one that it was made of."""

from __future__ import annotations

from typing import Any

import falcon
import msgspec
import sqlalchemy as sa

from nova_lite import exception
from nova_lite.api import image_lookup, server_creation, server_lookup
from nova_lite.api.request import Request
from nova_lite.api.schemas import server_actions as schemas
from nova_lite.api.services import Services
from nova_lite.db import instances, operations
from nova_lite.db.instances import Instance
from nova_lite.objects import instance as states
from nova_lite.objects.image import Image

_CAN_BE_RESCUED = (states.ACTIVE, states.STOPPED, states.ERROR)


class ServerRescue:
    """The action rescue; unrescue says nothing but its name."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.actions = {"rescue": (schemas.RESCUE, self._rescue)}

    def _rescue(self, req: Request, resp: falcon.Response, server_id: str, value: dict[str, Any] | None) -> None:
        services, wanted = self._services, value or {}
        row = server_lookup.find(services, req, server_id, "os-rescue")
        image = self._image(req, row, wanted.get("rescue_image_ref"))
        caller = server_lookup.caller(req)

        def unit(conn: sa.Connection) -> str:
            operation = instances.begin_action(
                conn,
                row.uuid,
                kind=operations.RESCUE,
                task_state=states.RESCUING,
                caller=caller,
                vm_states=_CAN_BE_RESCUED,
                arguments={"image": msgspec.to_builtins(image)},
            )
            server_lookup.server_of(conn, services, row)
            return operation

        operation = services.db.write(unit)
        server_lookup.hint(services, req, [operation])
        resp.status = falcon.HTTP_200
        resp.media = {"adminPass": server_creation.password(wanted)}

    def _image(self, req: Request, row: Instance, image_id: str | None) -> Image:
        """Return the image to boot from.

        :raises BadRequest: there is none that can be booted from.
        """
        if image_id is None:
            image = instances.image_of(row)
            if image is None:
                raise exception.BadRequest("The server was made of no image: name one as rescue_image_ref.")
            return image
        refusal = f"Requested rescue image '{image_id}' is not supported"
        try:
            image = image_lookup.show_image(self._services, req.nova, image_id)
        except exception.ImageNotFound:
            raise exception.BadRequest(f"{refusal}: there is none.")
        if image.status != "active":
            raise exception.BadRequest(f"{refusal}: it has no content yet.")
        return image

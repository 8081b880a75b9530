# SPDX-License-Identifier: Apache-2.0
"""Shelving a server, and unshelving it where there is room, or where the request says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import falcon
import sqlalchemy as sa
from oslo_log import log

from nova_lite import exception, policy
from nova_lite.api import server_images, server_lookup
from nova_lite.api.image_files import ImageFiles
from nova_lite.api.microversion import Version, Versioned
from nova_lite.api.request import Request
from nova_lite.api.schemas import server_actions as schemas
from nova_lite.api.server_lookup import API
from nova_lite.api.services import Services
from nova_lite.api.validation import Schema
from nova_lite.db import instances, operations, registry, shelves, zones
from nova_lite.db.instances import Instance
from nova_lite.db.shelves import Wish
from nova_lite.objects import instance as states

LOG = log.getLogger(__name__)

_TO_A_ZONE = Version(2, 77)
_TO_A_HOST = Version(2, 91)


class ServerShelving:
    """The actions shelve and unshelve; shelveOffload says nothing but its name."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.actions: dict[
            str, tuple[Schema | Versioned[Schema], Callable[[Request, falcon.Response, str, Any], None]]
        ] = {
            "shelve": (schemas.SHELVE, self._shelve),
            "unshelve": (schemas.UNSHELVE, self._unshelve),
        }

    def _shelve(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        services = self._services
        row = server_lookup.find(services, req, server_id, "os-shelve:shelve")
        caller = server_lookup.caller(req)
        # Looked at before as well, lest Glance gets an image for nothing.
        instances.check_lock(row, caller)
        instances.check_state(row, operations.SHELVE, instances.AT_REST)
        services.db.read(lambda conn: server_lookup.server_of(conn, services, row))
        image = server_images.describe(req, row, f"{row.name[:247]}-shelved", "snapshot", {})
        image_id, stored = server_images.make_image(services, req, image)

        def unit(conn: sa.Connection) -> str:
            return shelves.begin_shelve(conn, row.uuid, caller, image_id, image, stored=stored is not None)

        try:
            operation = services.db.write(unit)
        except exception.NovaLiteError:
            server_images.give_up_image(services, req, image_id)
            raise
        server_lookup.hint(services, req, [operation])

    def _unshelve(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        services = self._services
        row = server_lookup.find(services, req, server_id, "os-shelve:unshelve")
        wish = self._wish(req, row, value)
        caller = server_lookup.caller(req)

        def unit(conn: sa.Connection) -> str:
            operation = shelves.begin_unshelve(conn, row.uuid, caller, wish)
            self._check_place(conn, row, wish)
            if row.vm_state == states.SHELVED:
                server_lookup.server_of(conn, services, row)
            return operation

        operation = services.db.write(unit)
        server_lookup.hint(services, req, [operation])

    def _wish(self, req: Request, row: Instance, value: Any) -> Wish:
        """Read where the server shall go; to name a host is for administrators."""
        if req.version < _TO_A_ZONE or not isinstance(value, dict):
            return Wish()
        host = value.get("host") if req.version >= _TO_A_HOST else None
        if host is not None:
            target = {"project_id": row.project_id, "user_id": row.user_id}
            policy.authorize(req.nova, API + "os-shelve:unshelve_to_host", target)
        return Wish("availability_zone" in value, value.get("availability_zone"), host)

    def _check_place(self, conn: sa.Connection, row: Instance, wish: Wish) -> None:
        """:raises BadRequest: there is no such zone or host.
        :raises Conflict: the host is in another zone than the server is to be in.
        """
        default = self._services.conf.api.default_availability_zone
        zone = wish.zone if wish.repin else row.requested_zone
        by_host = zones.by_host(conn) if wish else {}
        if wish.repin and wish.zone not in (None, default, *by_host.values()):
            raise exception.BadRequest("The requested availability zone is not available")
        if wish.host is None:
            return
        if not registry.compute_servers(conn, [wish.host], self._services.conf.service_down_time):
            raise exception.BadRequest(f"Compute host {wish.host} could not be found.")
        if zone is not None and by_host.get(wish.host, default) != zone:
            raise exception.Conflict(
                f'Host "{wish.host}" is not in the availability zone "{zone}". Ask for another host, or for the '
                "host's zone."
            )


def remove_image(services: Services, row: Instance) -> None:
    """Remove the content of the image that a server which is being deleted was kept in; only a pity if it fails."""
    image_id = shelves.image_of(row)
    if image_id is None:
        return
    try:
        if services.image_catalogue is None:
            ImageFiles(services.conf).remove(image_id)
        else:
            services.image_catalogue.delete(image_id)
    except (exception.NovaLiteError, OSError) as error:
        LOG.warning("image left behind image=%s reason=%s", image_id, error)

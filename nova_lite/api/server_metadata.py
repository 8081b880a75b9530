# SPDX-License-Identifier: Apache-2.0
"""The metadata of a server: the user's own words about it."""

from __future__ import annotations

import json
from typing import Any

import falcon
import sqlalchemy as sa

from nova_lite import exception
from nova_lite.api import server_lookup
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import server_metadata as schemas
from nova_lite.api.services import Services
from nova_lite.db import instances, quotas


def _set(
    services: Services, req: Request, server_id: str, action: str, items: dict[str, str], replace: bool
) -> dict[str, str]:
    row = server_lookup.find(services, req, server_id, f"server-metadata:{action}")
    caller = server_lookup.caller(req)

    def unit(conn: sa.Connection) -> dict[str, str]:
        limit = quotas.limits(conn, services.conf, row.project_id, row.user_id)["metadata_items"]
        return instances.set_metadata(conn, row.uuid, caller, items, replace=replace, limit=limit)

    return services.db.write(unit)


class Metadata:
    """/servers/{server_id}/metadata"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Show all items."""
        row = server_lookup.find(self._services, req, server_id, "server-metadata:index")
        resp.media = {"metadata": json.loads(row.metadata)}

    @takes(body=schemas.METADATA)
    def on_post(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Add items, or change them."""
        items = req.json_body()["metadata"]
        resp.media = {"metadata": _set(self._services, req, server_id, "create", items, replace=False)}

    @takes(body=schemas.METADATA)
    def on_put(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Put these items in the place of all others."""
        items = req.json_body()["metadata"]
        resp.media = {"metadata": _set(self._services, req, server_id, "update_all", items, replace=True)}


class MetadataItem:
    """/servers/{server_id}/metadata/{key}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str, key: str) -> None:
        """Show one item."""
        row = server_lookup.find(self._services, req, server_id, "server-metadata:show")
        items: dict[str, Any] = json.loads(row.metadata)
        if key not in items:
            raise exception.NotFound("Metadata item was not found")
        resp.media = {"meta": {key: items[key]}}

    @takes(body=schemas.ITEM)
    def on_put(self, req: Request, resp: falcon.Response, server_id: str, key: str) -> None:
        """Add one item, or change it."""
        items = req.json_body()["meta"]
        if key not in items:
            raise exception.BadRequest("Request body and URI mismatch")
        _set(self._services, req, server_id, "update", items, replace=False)
        resp.media = {"meta": items}

    def on_delete(self, req: Request, resp: falcon.Response, server_id: str, key: str) -> None:
        """Remove one item."""
        row = server_lookup.find(self._services, req, server_id, "server-metadata:delete")
        caller = server_lookup.caller(req)
        self._services.db.write(lambda conn: instances.delete_metadata_item(conn, row.uuid, caller, key))
        resp.status = falcon.HTTP_204


ROUTES = [
    ("/servers/{server_id}/metadata", Metadata),
    ("/servers/{server_id}/metadata/{key}", MetadataItem),
]

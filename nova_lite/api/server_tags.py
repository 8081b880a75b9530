# SPDX-License-Identifier: Apache-2.0
"""The tags of a server, since 2.26."""

from __future__ import annotations

import falcon

from nova_lite import exception
from nova_lite.api import server_lookup, validation
from nova_lite.api.request import Request, since, takes
from nova_lite.api.schemas import server_tags as schemas
from nova_lite.api.services import Services
from nova_lite.api.views import links
from nova_lite.db import instance_tags


class Tags:
    """/servers/{server_id}/tags"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @since("2.26")
    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """List the tags."""
        row = server_lookup.find(self._services, req, server_id, "os-server-tags:index")
        tags = self._services.db.read(lambda conn: instance_tags.of(conn, [row.uuid]))
        resp.media = {"tags": tags.get(row.uuid, [])}

    @since("2.26")
    @takes(body=schemas.TAGS)
    def on_put(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Put these tags in the place of all others."""
        tags = req.json_body()["tags"]
        row = server_lookup.find(self._services, req, server_id, "os-server-tags:update_all")
        resp.media = {"tags": self._services.db.write(lambda conn: instance_tags.replace(conn, row.uuid, tags))}

    @since("2.26")
    def on_delete(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Remove all tags."""
        row = server_lookup.find(self._services, req, server_id, "os-server-tags:delete_all")
        self._services.db.write(lambda conn: instance_tags.remove_all(conn, row.uuid))
        resp.status = falcon.HTTP_204


class Tag:
    """/servers/{server_id}/tags/{tag}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @since("2.26")
    def on_get(self, req: Request, resp: falcon.Response, server_id: str, tag: str) -> None:
        """Tell whether the server has the tag."""
        row = server_lookup.find(self._services, req, server_id, "os-server-tags:show")
        tags = self._services.db.read(lambda conn: instance_tags.of(conn, [row.uuid]))
        if tag not in tags.get(row.uuid, ()):
            raise exception.NotFound(f"Server {row.uuid} has no tag '{tag}'")
        resp.status = falcon.HTTP_204

    @since("2.26")
    def on_put(self, req: Request, resp: falcon.Response, server_id: str, tag: str) -> None:
        """Give the server the tag."""
        row = server_lookup.find(self._services, req, server_id, "os-server-tags:update")
        validation.validate({"tag": tag}, schemas.ONE, req.version)
        new = self._services.db.write(lambda conn: instance_tags.add(conn, row.uuid, tag))
        resp.status = falcon.HTTP_201 if new else falcon.HTTP_204
        if new:
            resp.set_header("Location", f"{links.resource(req, 'servers', row.uuid)[0]['href']}/tags/{tag}")

    @since("2.26")
    def on_delete(self, req: Request, resp: falcon.Response, server_id: str, tag: str) -> None:
        """Take the tag away."""
        row = server_lookup.find(self._services, req, server_id, "os-server-tags:delete")
        self._services.db.write(lambda conn: instance_tags.remove(conn, row.uuid, tag))
        resp.status = falcon.HTTP_204


ROUTES = [
    ("/servers/{server_id}/tags", Tags),
    ("/servers/{server_id}/tags/{tag}", Tag),
]

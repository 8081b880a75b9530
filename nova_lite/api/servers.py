# SPDX-License-Identifier: Apache-2.0
"""Servers: creating, listing, showing, changing and deleting them.

Creating and deleting are accepted as rows and done by a conductor: the answer comes when the rows are committed.
"""

from __future__ import annotations

import falcon
import sqlalchemy as sa

from nova_lite import exception, policy
from nova_lite.api import (
    paging,
    server_creation,
    server_fields,
    server_lookup,
    server_search,
    server_shelving,
)
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import servers as schemas
from nova_lite.api.server_lookup import API
from nova_lite.api.services import Services
from nova_lite.api.validation import boolean
from nova_lite.api.views import servers as views
from nova_lite.db import instance_search, instances, zones
from nova_lite.db.instances import Instance

_PINNED = "pinned_availability_zone"


class Servers:
    """/servers"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List servers by id and name."""
        policy.authorize(req.nova, API + "servers:index")
        query = req.query()
        page = paging.page(query, self._services.conf.api.max_limit)
        try:
            filters = server_search.filters(req, query, self._services.conf, "index")
        except server_search.NothingMatches:
            resp.media = {"servers": []}
            return
        order = server_search.order(req, query)
        rows = self._services.db.read(lambda conn: instance_search.short(conn, filters, order, page.limit, page.marker))
        last = rows[-1].uuid if rows else ""
        resp.media = {"servers": views.short_list(req, rows), **paging.next_links(req, "servers", rows, page, last)}

    @takes(body=schemas.CREATE)
    def on_post(self, req: Request, resp: falcon.Response) -> None:
        """Create one server, or several alike."""
        body = req.json_body()
        policy.authorize(req.nova, API + "servers:create")
        services, server = self._services, body["server"]
        new = server_creation.new_instances(services, req, body)
        caller = server_lookup.caller(req)
        created = services.db.write(lambda conn: instances.create(conn, services.conf, new, caller))
        server_lookup.hint(services, req, created.operations)
        resp.status = falcon.HTTP_202
        if boolean(server.get("return_reservation_id", False)):
            resp.media = {"reservation_id": new.reservation_id}
            return
        groups = server.get("security_groups") or [{"name": "default"}]
        shown = views.created(req, created.uuids[0], new.disk_config, groups, server_creation.password(server))
        resp.media = shown
        resp.set_header("Location", shown["server"]["links"][0]["href"])


class ServersDetail:
    """/servers/detail"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List servers with all that there is to show of them."""
        policy.authorize(req.nova, API + "servers:detail")
        query = req.query()
        page = paging.page(query, self._services.conf.api.max_limit)
        try:
            filters = server_search.filters(req, query, self._services.conf, "detail")
        except server_search.NothingMatches:
            resp.media = {"servers": []}
            return
        order = server_search.order(req, query)
        user_data = policy.allows(req.nova, API + "os-extended-server-attributes")

        def unit(conn: sa.Connection) -> tuple[list[Instance], views.Facts]:
            rows = instance_search.full(conn, filters, order, page.limit, page.marker, user_data=user_data)
            return rows, server_lookup.read_facts(conn, self._services, req, rows)

        rows, facts = self._services.db.read(unit)
        last = rows[-1].uuid if rows else ""
        resp.media = {
            "servers": [views.detail(req, row, facts) for row in rows],
            **paging.next_links(req, "servers/detail", rows, page, last),
        }


class Server:
    """/servers/{server_id}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Show a server."""
        row, facts = self._read(req, server_id)
        resp.media = {"server": views.show(req, row, facts)}

    @takes(body=schemas.UPDATE)
    def on_put(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Change a server's name and what else is only written down."""
        changes = req.json_body()["server"]
        row = server_lookup.find(self._services, req, server_id, "servers:update")
        values = server_fields.columns(changes)

        def unit(conn: sa.Connection) -> tuple[Instance, views.Facts]:
            if _PINNED in changes:
                values["requested_zone"] = self._pinned(conn, instances.lock(conn, row.uuid), changes[_PINNED])
            changed = instances.update(conn, row.uuid, **values) if values else row
            return changed, server_lookup.read_facts(conn, self._services, req, [changed])

        changed, facts = self._services.db.write(unit)
        resp.media = {"server": views.updated(req, changed, facts)}

    def _pinned(self, conn: sa.Connection, row: Instance, zone: str | None) -> str | None:
        """Return the zone that a server is to be pinned to: the one that it is in, or none.

        :raises Conflict: it is another one.
        """
        if zone is None or zone == row.requested_zone:
            return zone
        if row.requested_zone is not None:
            raise exception.Conflict(
                f"Server {row.uuid} is pinned to the availability zone {row.requested_zone}. Unpin it first, by "
                "setting pinned_availability_zone to null."
            )
        default: str = self._services.conf.api.default_availability_zone
        where = zones.by_host(conn, [row.host]).get(row.host, default) if row.host else None
        if zone != where:
            raise exception.Conflict(
                f"Server {row.uuid} can only be pinned to the availability zone that it is in, which is {where}."
            )
        return zone

    def on_delete(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Set out to delete a server."""
        row = server_lookup.find(self._services, req, server_id, "servers:delete")
        caller = server_lookup.caller(req)
        operation = self._services.db.write(lambda conn: instances.begin_delete(conn, row.uuid, caller))
        server_shelving.remove_image(self._services, row)
        server_lookup.hint(self._services, req, [operation])
        resp.status = falcon.HTTP_204

    def _read(self, req: Request, server_id: str) -> tuple[Instance, views.Facts]:
        uuid = server_lookup.parse_id(server_id)

        def unit(conn: sa.Connection) -> tuple[Instance, views.Facts]:
            row = instances.get(conn, uuid)
            server_lookup.check(req, row, "servers:show")
            return row, server_lookup.read_facts(conn, self._services, req, [row])

        return self._services.db.read(unit)


ROUTES = [
    ("/servers", Servers),
    ("/servers/detail", ServersDetail),
    ("/servers/{server_id}", Server),
]

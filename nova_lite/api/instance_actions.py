# SPDX-License-Identifier: Apache-2.0
"""What has been done to a server: its operations, the newest first, and the steps of each."""

from __future__ import annotations

import datetime

import falcon

from nova_lite import exception, policy
from nova_lite.api import paging, server_lookup
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import instance_actions as schemas
from nova_lite.api.server_lookup import API
from nova_lite.api.services import Services
from nova_lite.api.views import instance_actions as views
from nova_lite.db import operations
from nova_lite.db.instances import Instance
from nova_lite.db.operations import Operation

_DELETED_TOO = Version(2, 21)
_PAGED = Version(2, 58)


def _find(services: Services, req: Request, server_id: str, action: str) -> Instance:
    return server_lookup.find(services, req, server_id, action, include_deleted=req.version >= _DELETED_TOO)


class InstanceActions:
    """/servers/{server_id}/os-instance-actions"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """List the actions."""
        query = req.query()
        row = _find(self._services, req, server_id, "os-instance-actions:list")
        if req.version < _PAGED:
            query = {}
        page = paging.page(query, self._services.conf.api.max_limit)
        since, before = paging.period(query)
        found = self._page(row, page, since, before)
        resp.media = {"instanceActions": [views.action(operation, req.version) for operation in found]}
        if req.version >= _PAGED and found:
            path = f"servers/{row.uuid}/os-instance-actions"
            for following in paging.next_links(req, path, found, page, found[-1].request_id).values():
                resp.media["links"] = following

    def _page(
        self, row: Instance, page: paging.Page, since: datetime.datetime | None, before: datetime.datetime | None
    ) -> list[Operation]:
        try:
            return self._services.db.read(
                lambda conn: operations.of_instance(
                    conn,
                    row.uuid,
                    changes_since=since,
                    changes_before=before,
                    marker=page.marker,
                    limit=page.limit,
                )
            )
        except LookupError:
            raise exception.BadRequest(f"Marker {page.marker} could not be found.")


class InstanceAction:
    """/servers/{server_id}/os-instance-actions/{request_id}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, server_id: str, request_id: str) -> None:
        """Show one action, with the events that the caller may see."""
        row = _find(self._services, req, server_id, "os-instance-actions:show")
        found = self._services.db.read(lambda conn: operations.of_instance(conn, row.uuid, request_id=request_id))
        if not found:
            raise exception.NotFound(f"Action {request_id[:64]} not found")
        shown = views.action(found[0], req.version)
        target = {"project_id": row.project_id, "user_id": row.user_id}
        everything = policy.allows(req.nova, API + "os-instance-actions:events", target)
        if everything or req.version >= Version(2, 51):
            sight = views.Sight(
                traceback=everything,
                host=everything and req.version >= Version(2, 62),
                host_id=req.version >= Version(2, 62),
                details=req.version >= Version(2, 84)
                and policy.allows(req.nova, API + "os-instance-actions:events:details", target),
            )
            steps = self._services.db.read(lambda conn: operations.steps(conn, found[0].id))
            shown["events"] = [views.event(step, row.project_id, sight) for step in steps]
        resp.media = {"instanceAction": shown}


ROUTES = [
    ("/servers/{server_id}/os-instance-actions", InstanceActions),
    ("/servers/{server_id}/os-instance-actions/{request_id}", InstanceAction),
]

# SPDX-License-Identifier: Apache-2.0
"""/os-server-groups: servers that are to share a host, or to keep apart."""

from __future__ import annotations

import uuid

import falcon

from nova_lite import exception, policy
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import server_groups as schemas
from nova_lite.api.services import Services
from nova_lite.api.views import server_groups as views
from nova_lite.db import server_groups
from nova_lite.db.server_groups import ServerGroup
from nova_lite.objects.group import ANTI_AFFINITY

_API = "os_compute_api:os-server-groups:"


class ServerGroups:
    """/os-server-groups"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "index")
        query = req.query()
        project_id: str | None = req.nova.project_id
        if "all_projects" in query and req.nova.is_admin:
            policy.authorize(req.nova, _API + "index:all_projects")
            project_id = None
        largest: int = self._services.conf.api.max_limit
        limit = min(int(query.get("limit", [str(largest)])[0]), largest)
        offset = int(query.get("offset", ["0"])[0])
        found, members = self._services.db.read(
            lambda conn: (
                groups := server_groups.search(conn, project_id, limit, offset),
                server_groups.members(conn, [group.id for group in groups]),
            )
        )
        resp.media = {"server_groups": [views.detail(req, group, members.get(group.id, [])) for group in found]}

    @takes(body=schemas.CREATE)
    def on_post(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "create")
        body = req.json_body()["server_group"]
        name, rules = body["name"], body.get("rules") or {}
        chosen = body["policy"] if "policy" in body else body["policies"][0]
        if rules and chosen != ANTI_AFFINITY:
            raise exception.BadRequest("Only anti-affinity policy supports rules.")
        most = int(rules["max_server_per_host"]) if rules else None
        group_uuid = str(uuid.uuid4())
        group = self._services.db.write(
            lambda conn: server_groups.create(
                conn,
                self._services.conf,
                group_uuid,
                project_id=req.project_id,
                user_id=req.user_id,
                name=name,
                policy=chosen,
                max_server_per_host=most,
            )
        )
        resp.media = {"server_group": views.detail(req, group, [])}


class ServerGroupResource:
    """/os-server-groups/{group_id}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def _get(self, req: Request, group_id: str, action: str) -> ServerGroup:
        owner = None if req.nova.is_admin else req.nova.project_id
        group = self._services.db.read(lambda conn: server_groups.get(conn, group_id, owner))
        policy.authorize(req.nova, _API + action, {"project_id": group.project_id})
        return group

    def on_get(self, req: Request, resp: falcon.Response, group_id: str) -> None:
        group = self._get(req, group_id, "show")
        members = self._services.db.read(lambda conn: server_groups.members(conn, [group.id]))
        resp.media = {"server_group": views.detail(req, group, members.get(group.id, []))}

    def on_delete(self, req: Request, resp: falcon.Response, group_id: str) -> None:
        group = self._get(req, group_id, "delete")
        self._services.db.write(lambda conn: server_groups.delete(conn, group.id))
        resp.status = falcon.HTTP_204


ROUTES: list[tuple[str, type]] = [
    ("/os-server-groups", ServerGroups),
    ("/os-server-groups/{group_id}", ServerGroupResource),
]

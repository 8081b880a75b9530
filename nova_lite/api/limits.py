# SPDX-License-Identifier: Apache-2.0
"""/limits: what a project may have and has, in one look."""

from __future__ import annotations

import falcon

from nova_lite import policy
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import limits as schemas
from nova_lite.api.services import Services
from nova_lite.api.views import limits as views
from nova_lite.db import quotas, server_groups


class Limits:
    """/limits"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @takes(query=schemas.SHOW)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, "os_compute_api:limits")
        project_id = req.query().get("tenant_id", [req.project_id])[0]
        if project_id != req.project_id:
            policy.authorize(req.nova, "os_compute_api:limits:other_project", {"project_id": project_id})
        conf = self._services.conf
        limits, usage, groups = self._services.db.read(
            lambda conn: (
                quotas.limits(conn, conf, project_id),
                quotas.usage(conn, project_id),
                server_groups.count(conn, project_id),
            )
        )
        resp.media = views.absolute(req, limits, usage, groups)


ROUTES: list[tuple[str, type]] = [("/limits", Limits)]

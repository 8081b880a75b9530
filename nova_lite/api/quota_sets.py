# SPDX-License-Identifier: Apache-2.0
"""/os-quota-sets and /os-quota-class-sets: the limits of projects, and the defaults of those without their own.

With ``user_id`` they are the limits of one user in a project: within the project's, and of those of its other users.
"""

from __future__ import annotations

from typing import Any

import falcon

from nova_lite import exception, policy
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import quota_sets as schemas
from nova_lite.api.services import Services
from nova_lite.api.validation import MAX_INT, boolean
from nova_lite.db import quotas, server_groups
from nova_lite.db.quotas import UNLIMITED

_API = "os_compute_api:os-quota-sets:"
_CLASS_API = "os_compute_api:os-quota-class-sets:"
_DEFAULT_CLASS = "default"


class _Resource:
    def __init__(self, services: Services) -> None:
        self._conf = services.conf
        self._db = services.db

    def _limits(self, project_id: str, user_id: str | None = None) -> dict[str, int]:
        return self._db.read(lambda conn: quotas.limits(conn, self._conf, project_id, user_id))

    def _usage(self, project_id: str, user_id: str | None = None) -> dict[str, int]:
        """Return what is used, by resource. Of what is counted by user, server or group, the API shows nothing."""
        usage, groups = self._db.read(
            lambda conn: (quotas.usage(conn, project_id, user_id), server_groups.count(conn, project_id, user_id))
        )
        return {"instances": usage.instances, "cores": usage.cores, "ram": usage.ram, "server_groups": groups}


def _shown(req: Request, limits: dict[str, int]) -> dict[str, Any]:
    names = schemas.RESOURCES.at(req.version) or ()
    return {name: limits[schemas.INNER_NAMES.get(name, name)] for name in names}


def _user(req: Request) -> str | None:
    """Return the user whose limits are meant, None for the project's; an empty name is none."""
    return req.query().get("user_id", [""])[0] or None


def _values(body: dict[str, Any]) -> dict[str, int]:
    """Return the limits of a body by the inner names of their resources.

    :raises BadRequest: one is out of range.
    """
    values = {schemas.INNER_NAMES.get(name, name): int(v) for name, v in body.items() if name != "force"}
    for name, limit in values.items():
        if not UNLIMITED <= limit <= MAX_INT:
            raise exception.BadRequest(f"The limit of {name} must be between -1 (unlimited) and {MAX_INT}.")
    return values


class QuotaSet(_Resource):
    """/os-quota-sets/{project_id}"""

    @takes(query=schemas.QUERY)
    def on_get(self, req: Request, resp: falcon.Response, project_id: str) -> None:
        policy.authorize(req.nova, _API + "show", {"project_id": project_id})
        resp.media = {"quota_set": {"id": project_id, **_shown(req, self._limits(project_id, _user(req)))}}

    @takes(body=schemas.UPDATE, query=schemas.QUERY)
    def on_put(self, req: Request, resp: falcon.Response, project_id: str) -> None:
        policy.authorize(req.nova, _API + "update", {"project_id": project_id})
        user_id = _user(req)
        body = req.json_body()["quota_set"]
        values = _values(body)
        if not boolean(body.get("force", False)):
            self._check_range(project_id, user_id, values)
        self._db.write(lambda conn: quotas.set_limits(conn, project_id, values, user_id))
        resp.media = {"quota_set": _shown(req, self._limits(project_id, user_id))}

    def _check_range(self, project_id: str, user_id: str | None, values: dict[str, int]) -> None:
        """Make sure that the limits leave room for what is used, and that users get no more than the project has.

        :raises BadRequest: one is too low, or too high.
        """
        used, of_project = self._usage(project_id, user_id), self._limits(project_id)
        others = self._db.read(lambda conn: quotas.limits_of_other_users(conn, project_id, user_id))
        for name, limit in values.items():
            given = others.get(name, 0)
            least = used.get(name, 0) if user_id else max(used.get(name, 0), given)
            if limit != UNLIMITED and limit < least:
                raise exception.BadRequest(
                    f"Quota limit {limit} for {name} must be greater than or equal to already used and reserved "
                    f"{least}."
                )
            if user_id is None or of_project[name] == UNLIMITED:
                continue
            most = max(of_project[name] - given, 0)
            if limit == UNLIMITED or limit > most:
                raise exception.BadRequest(f"Quota limit {limit} for {name} must be less than or equal to {most}.")

    @takes(query=schemas.QUERY)
    def on_delete(self, req: Request, resp: falcon.Response, project_id: str) -> None:
        policy.authorize(req.nova, _API + "delete", {"project_id": project_id})
        user_id = _user(req)
        self._db.write(lambda conn: quotas.clear_limits(conn, project_id, user_id))
        resp.status = falcon.HTTP_202


class QuotaSetDetail(_Resource):
    """/os-quota-sets/{project_id}/detail"""

    @takes(query=schemas.QUERY)
    def on_get(self, req: Request, resp: falcon.Response, project_id: str) -> None:
        policy.authorize(req.nova, _API + "detail", {"project_id": project_id})
        user_id = _user(req)
        used = self._usage(project_id, user_id)
        shown: dict[str, Any] = {
            name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
            for name, limit in _shown(req, self._limits(project_id, user_id)).items()
        }
        resp.media = {"quota_set": {"id": project_id, **shown}}


class QuotaSetDefaults(_Resource):
    """/os-quota-sets/{project_id}/defaults"""

    def on_get(self, req: Request, resp: falcon.Response, project_id: str) -> None:
        policy.authorize(req.nova, _API + "defaults", {"project_id": project_id})
        limits = self._db.read(lambda conn: quotas.defaults(conn, self._conf))
        resp.media = {"quota_set": {"id": project_id, **_shown(req, limits)}}


class QuotaClassSet(_Resource):
    """/os-quota-class-sets/{name}: there is one class, "default"."""

    def on_get(self, req: Request, resp: falcon.Response, name: str) -> None:
        policy.authorize(req.nova, _CLASS_API + "show")
        resp.media = {"quota_class_set": {"id": name, **self._shown_class(req, name)}}

    @takes(body=schemas.UPDATE_CLASS)
    def on_put(self, req: Request, resp: falcon.Response, name: str) -> None:
        policy.authorize(req.nova, _CLASS_API + "update")
        self._check(name)
        values = _values(req.json_body()["quota_class_set"])
        self._db.write(lambda conn: quotas.set_defaults(conn, values))
        resp.media = {"quota_class_set": self._shown_class(req, name)}

    def _shown_class(self, req: Request, name: str) -> dict[str, Any]:
        self._check(name)
        limits = self._db.read(lambda conn: quotas.defaults(conn, self._conf))
        names = schemas.CLASS_RESOURCES.at(req.version) or ()
        return {name: limits[schemas.INNER_NAMES.get(name, name)] for name in names}

    def _check(self, name: str) -> None:
        if name != _DEFAULT_CLASS:
            raise exception.NotFound(f"There is no quota class {name[:64]}; the one that there is is called default.")


ROUTES: list[tuple[str, type]] = [
    ("/os-quota-sets/{project_id}", QuotaSet),
    ("/os-quota-sets/{project_id}/detail", QuotaSetDetail),
    ("/os-quota-sets/{project_id}/defaults", QuotaSetDefaults),
    ("/os-quota-class-sets/{name}", QuotaClassSet),
]

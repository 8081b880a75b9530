# SPDX-License-Identifier: Apache-2.0
"""/flavors: the sizes that servers come in, their extra specs, and who may use the private ones."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import falcon
from oslo_utils import strutils

from nova_lite import exception, policy
from nova_lite.api import paging
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request, since, takes
from nova_lite.api.schemas import flavors as schemas
from nova_lite.api.services import Services
from nova_lite.api.validation import boolean
from nova_lite.api.views import flavors as views
from nova_lite.db import flavors
from nova_lite.objects.flavor import Flavor

_API = "os_compute_api:"
_EXTRA_SPECS = _API + "os-flavor-extra-specs:"
_PUBLIC_ACCESS_CONFLICTS = Version(2, 7)
_EXTRA_SPECS_ARE_CHECKED = Version(2, 86)
_NAME_FILTER = Version(2, 102)


class _Resource:
    def __init__(self, services: Services) -> None:
        self._services = services

    def _get(self, req: Request, flavor_id: str) -> Flavor:
        project_id = None if req.nova.is_admin else req.nova.project_id
        return self._services.db.read(lambda conn: flavors.get(conn, flavor_id, project_id))

    def _list(self, req: Request) -> tuple[list[Flavor], paging.Page]:
        query = req.query()
        page = paging.page(query, self._services.conf.api.max_limit)
        wanted = _search(req, query, page)
        if page.limit == 0:
            return [], page
        return self._services.db.read(lambda conn: flavors.search(conn, wanted)), page


def _search(req: Request, query: dict[str, list[str]], page: paging.Page) -> flavors.Search:
    sort_key = query.get("sort_key", ["flavorid"])[0]
    sort_dir = query.get("sort_dir", ["asc"])[0]
    if sort_key not in flavors.SORT_KEYS or sort_dir not in ("asc", "desc"):
        raise exception.BadRequest(f"Flavors cannot be sorted by {sort_key[:64]} {sort_dir[:64]}.")
    return flavors.Search(
        project_id=req.nova.project_id,
        is_public=_is_public(query.get("is_public", [None])[0]) if req.nova.is_admin else True,
        disabled=None if req.nova.is_admin else False,
        name=query.get("name", [None])[0] if req.version >= _NAME_FILTER else None,
        min_ram=_number(query, "minRam"),
        min_disk=_number(query, "minDisk"),
        sort_key=sort_key,
        descending=sort_dir == "desc",
        marker=page.marker,
        limit=page.limit,
    )


def _is_public(text: str | None) -> bool | None:
    """Read the filter: without one the public flavors are shown, with "None" all."""
    if text is None:
        return True
    if text.lower() == "none":
        return None
    try:
        return bool(strutils.bool_from_string(text, strict=True))
    except ValueError:
        raise exception.BadRequest(f"Invalid is_public filter [{text[:64]}]")


def _number(query: dict[str, list[str]], name: str) -> int:
    text = query.get(name, ["0"])[0]
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise exception.BadRequest(f"Invalid {name} filter [{text[:64]}]")
    return int(text)


class Flavors(_Resource):
    """/flavors"""

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List flavors by id and name."""
        found, page = self._list(req)
        last = found[-1].flavorid if found else ""
        resp.media = {
            "flavors": [views.summary(req, flavor) for flavor in found],
            **paging.next_links(req, "flavors", found, page, last),
        }

    @takes(body=schemas.CREATE)
    def on_post(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "os-flavor-manage:create")
        flavor = _flavor(req.json_body()["flavor"])
        self._services.db.write(lambda conn: flavors.create(conn, flavor))
        resp.media = {"flavor": views.detail(req, flavor, policy.allows(req.nova, _EXTRA_SPECS + "index"))}


def _flavor(body: dict[str, Any]) -> Flavor:
    flavorid = body.get("id")
    return Flavor(
        flavorid=str(uuid.uuid4()) if flavorid is None or flavorid == "auto" else str(flavorid),
        name=body["name"],
        vcpus=int(body["vcpus"]),
        memory_mb=int(body["ram"]),
        root_gb=int(body["disk"]),
        ephemeral_gb=int(body.get("OS-FLV-EXT-DATA:ephemeral", 0)),
        swap_mb=int(body.get("swap", 0)),
        rxtx_factor=float(body.get("rxtx_factor", 1.0)),
        is_public=boolean(body.get("os-flavor-access:is_public", True)),
        description=body.get("description"),
    )


class FlavorsDetail(_Resource):
    """/flavors/detail"""

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List flavors with all that there is to show of them."""
        found, page = self._list(req)
        last = found[-1].flavorid if found else ""
        with_extra_specs = policy.allows(req.nova, _EXTRA_SPECS + "index")
        resp.media = {
            "flavors": [views.detail(req, flavor, with_extra_specs) for flavor in found],
            **paging.next_links(req, "flavors/detail", found, page, last),
        }


class FlavorResource(_Resource):
    """/flavors/{flavor_id}"""

    def on_get(self, req: Request, resp: falcon.Response, flavor_id: str) -> None:
        """Show a flavor."""
        flavor = self._get(req, flavor_id)
        resp.media = {"flavor": views.detail(req, flavor, policy.allows(req.nova, _EXTRA_SPECS + "index"))}

    @since("2.55")
    @takes(body=schemas.UPDATE)
    def on_put(self, req: Request, resp: falcon.Response, flavor_id: str) -> None:
        policy.authorize(req.nova, _API + "os-flavor-manage:update")
        description = req.json_body()["flavor"]["description"]
        self._services.db.write(lambda conn: flavors.set_description(conn, flavor_id, description))
        flavor = replace(self._get(req, flavor_id), description=description)
        resp.media = {"flavor": views.detail(req, flavor, policy.allows(req.nova, _EXTRA_SPECS + "index"))}

    def on_delete(self, req: Request, resp: falcon.Response, flavor_id: str) -> None:
        policy.authorize(req.nova, _API + "os-flavor-manage:delete")
        self._services.db.write(lambda conn: flavors.delete(conn, flavor_id))
        resp.status = falcon.HTTP_202


class ExtraSpecs(_Resource):
    """/flavors/{flavor_id}/os-extra_specs"""

    def on_get(self, req: Request, resp: falcon.Response, flavor_id: str) -> None:
        policy.authorize(req.nova, _EXTRA_SPECS + "index")
        resp.media = {"extra_specs": self._get(req, flavor_id).extra_specs}

    @takes(body=schemas.SET_EXTRA_SPECS)
    def on_post(self, req: Request, resp: falcon.Response, flavor_id: str) -> None:
        policy.authorize(req.nova, _EXTRA_SPECS + "create")
        specs = _specs(req, req.json_body()["extra_specs"])
        self._services.db.write(lambda conn: flavors.set_extra_specs(conn, flavor_id, specs))
        resp.media = {"extra_specs": specs}


class ExtraSpec(_Resource):
    """/flavors/{flavor_id}/os-extra_specs/{key}"""

    def on_get(self, req: Request, resp: falcon.Response, flavor_id: str, key: str) -> None:
        policy.authorize(req.nova, _EXTRA_SPECS + "show")
        specs = self._get(req, flavor_id).extra_specs
        if key not in specs:
            raise exception.NotFound(f"Flavor {flavor_id} has no extra specs with key {key}.")
        resp.media = {key: specs[key]}

    @takes(body=schemas.SET_EXTRA_SPEC)
    def on_put(self, req: Request, resp: falcon.Response, flavor_id: str, key: str) -> None:
        policy.authorize(req.nova, _EXTRA_SPECS + "update")
        specs = _specs(req, req.json_body())
        if key not in specs:
            raise exception.BadRequest("Request body and URI mismatch")
        self._services.db.write(lambda conn: flavors.set_extra_specs(conn, flavor_id, specs))
        resp.media = specs

    def on_delete(self, req: Request, resp: falcon.Response, flavor_id: str, key: str) -> None:
        policy.authorize(req.nova, _EXTRA_SPECS + "delete")
        self._services.db.write(lambda conn: flavors.delete_extra_spec(conn, flavor_id, key))


def _specs(req: Request, body: dict[str, Any]) -> dict[str, str]:
    specs = {key: str(value) for key, value in body.items()}
    if req.version >= _EXTRA_SPECS_ARE_CHECKED:
        for key, value in specs.items():
            reason = schemas.unknown_extra_spec(key, value)
            if reason:
                raise exception.BadRequest(reason)
    return specs


class Access(_Resource):
    """/flavors/{flavor_id}/os-flavor-access"""

    def on_get(self, req: Request, resp: falcon.Response, flavor_id: str) -> None:
        policy.authorize(req.nova, _API + "os-flavor-access")
        if self._get(req, flavor_id).is_public:
            raise exception.NotFound("Access list not available for public flavors.")
        resp.media = _access(flavor_id, self._services.db.read(lambda conn: flavors.projects(conn, flavor_id)))


class Action(_Resource):
    """/flavors/{flavor_id}/action"""

    @takes(body=schemas.ACCESS)
    def on_post(self, req: Request, resp: falcon.Response, flavor_id: str) -> None:
        [(action, argument)] = req.json_body().items()
        project_id = argument["tenant"]
        if action == "addTenantAccess":
            policy.authorize(req.nova, _API + "os-flavor-access:add_tenant_access")
            lenient = req.version < _PUBLIC_ACCESS_CONFLICTS
            self._services.db.write(lambda conn: flavors.add_project(conn, flavor_id, project_id, lenient))
        else:
            policy.authorize(req.nova, _API + "os-flavor-access:remove_tenant_access")
            self._services.db.write(lambda conn: flavors.remove_project(conn, flavor_id, project_id))
        resp.media = _access(flavor_id, self._services.db.read(lambda conn: flavors.projects(conn, flavor_id)))


def _access(flavor_id: str, projects: list[str]) -> dict[str, Any]:
    return {"flavor_access": [{"flavor_id": flavor_id, "tenant_id": project} for project in projects]}


ROUTES: list[tuple[str, type]] = [
    ("/flavors", Flavors),
    ("/flavors/detail", FlavorsDetail),
    ("/flavors/{flavor_id}", FlavorResource),
    ("/flavors/{flavor_id}/os-extra_specs", ExtraSpecs),
    ("/flavors/{flavor_id}/os-extra_specs/{key}", ExtraSpec),
    ("/flavors/{flavor_id}/os-flavor-access", Access),
    ("/flavors/{flavor_id}/action", Action),
]

# SPDX-License-Identifier: Apache-2.0
"""/os-hypervisors: the compute nodes, what they have, and which servers are on them."""

from __future__ import annotations

import contextlib
from typing import Any

import falcon

from nova_lite import exception, policy, rpc
from nova_lite.api import paging
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request, takes, until
from nova_lite.api.schemas import hypervisors as schemas
from nova_lite.api.services import Services
from nova_lite.api.validation import boolean, is_uuid
from nova_lite.api.views import hypervisors as views
from nova_lite.db import hypervisors, registry
from nova_lite.db.hypervisors import Hypervisor, Server

_API = "os_compute_api:os-hypervisors:"
_PAGES = Version(2, 33)
_UUIDS = Version(2, 53)


class _Resource:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._db = services.db
        self._down_time: float = services.conf.service_down_time
        self._max_limit: int = services.conf.api.max_limit

    def _get(self, req: Request, hypervisor_id: str) -> Hypervisor:
        which = _identify(req, hypervisor_id)
        try:
            return self._db.read(lambda conn: hypervisors.get(conn, self._down_time, which))
        except exception.ComputeNodeNotFound:
            raise exception.NotFound(f"Hypervisor with ID '{hypervisor_id}' could not be found.")

    def _list(self, req: Request) -> tuple[list[Hypervisor], paging.Page, dict[int, list[Server]] | None]:
        """Return a page of hypervisors, with the servers on them if they are asked for."""
        query = req.query()
        pattern = query.get("hypervisor_hostname_pattern", [None])[0] if req.version >= _UUIDS else None
        if pattern is not None and ("limit" in query or "marker" in query):
            raise exception.BadRequest(
                "Paging over hypervisors with the hypervisor_hostname_pattern query parameter is not supported."
            )
        page = paging.page(query if req.version >= _PAGES else {}, self._max_limit)
        marker = _identify(req, page.marker) if page.marker is not None else None
        limit = page.limit if req.version >= _PAGES else None
        found = self._db.read(lambda conn: hypervisors.search(conn, self._down_time, pattern, limit, marker))
        if pattern is not None and not found:
            raise exception.NotFound(f"No hypervisor matching '{pattern}' could be found.")
        return found, page, self._servers(found) if _wants_servers(req, query) else None

    def _servers(self, found: list[Hypervisor]) -> dict[int, list[Server]]:
        return self._db.read(lambda conn: hypervisors.servers(conn, [one.id for one in found]))


def _wants_servers(req: Request, query: dict[str, list[str]]) -> bool:
    return req.version >= _UUIDS and boolean(query.get("with_servers", ["false"])[0])


_SERVERS_EVEN_IF_NONE = Version(2, 75)


def _with_servers(
    req: Request, view: dict[str, Any], shown: Hypervisor, servers: dict[int, list[Server]] | None
) -> dict[str, Any]:
    """Add the servers; below 2.75 a hypervisor without any has no such key."""
    if servers is None or (shown.id not in servers and req.version < _SERVERS_EVEN_IF_NONE):
        return view
    return views.with_servers(view, servers.get(shown.id, []))


def _identify(req: Request, text: str) -> int | str:
    """Read an id in the form that the version has: a uuid from 2.53 on, a number before."""
    if req.version >= _UUIDS:
        if not is_uuid(text):
            raise exception.BadRequest(f"Invalid uuid {text[:64]}")
        return text.lower()
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise exception.NotFound(f"Hypervisor with ID '{text[:64]}' could not be found.")
    return int(text)


def _last(req: Request, found: list[Hypervisor]) -> str:
    if not found:
        return ""
    return found[-1].uuid if req.version >= _UUIDS else str(found[-1].id)


class Hypervisors(_Resource):
    """/os-hypervisors"""

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "list")
        found, page, servers = self._list(req)
        resp.media = {"hypervisors": [_with_servers(req, views.summary(req, one), one, servers) for one in found]}
        if req.version >= _PAGES:
            resp.media |= paging.next_links(req, "os-hypervisors", found, page, _last(req, found))


class HypervisorsDetail(_Resource):
    """/os-hypervisors/detail"""

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "list-detail")
        found, page, servers = self._list(req)
        resp.media = {"hypervisors": [_with_servers(req, views.detail(req, one), one, servers) for one in found]}
        if req.version >= _PAGES:
            resp.media |= paging.next_links(req, "os-hypervisors/detail", found, page, _last(req, found))


class Statistics(_Resource):
    """/os-hypervisors/statistics"""

    @until("2.87")
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "statistics")
        found = self._db.read(lambda conn: hypervisors.search(conn, self._down_time))
        resp.media = {"hypervisor_statistics": views.statistics(found)}


class _Uptime(_Resource):
    def _uptime(self, req: Request, shown: Hypervisor) -> str:
        """Ask the hypervisor's host how long it is up.

        :raises BadRequest: its service is down.
        """
        host = shown.host
        found = self._db.read(lambda conn: registry.compute_servers(conn, [host], self._down_time))
        server, is_up = found.get(host, ("", False))
        if not is_up:
            raise exception.BadRequest(f"Compute service of {host} is unavailable at this time.")
        return self._services.compute.uptime(req.nova, server)


class HypervisorResource(_Uptime):
    """/os-hypervisors/{hypervisor_id}"""

    @takes(query=schemas.SHOW)
    def on_get(self, req: Request, resp: falcon.Response, hypervisor_id: str) -> None:
        policy.authorize(req.nova, _API + "show")
        query = req.query()
        shown = self._get(req, hypervisor_id)
        servers = self._servers([shown]) if _wants_servers(req, query) else None
        view = views.detail(req, shown)
        if "uptime" in view:
            # Of a single one; a list would ask every host of the cloud.
            with contextlib.suppress(exception.BadRequest, rpc.Error):
                view["uptime"] = self._uptime(req, shown)
        resp.media = {"hypervisor": _with_servers(req, view, shown, servers)}


class Uptime(_Uptime):
    """/os-hypervisors/{hypervisor_id}/uptime"""

    @until("2.87")
    def on_get(self, req: Request, resp: falcon.Response, hypervisor_id: str) -> None:
        policy.authorize(req.nova, _API + "uptime")
        shown = self._get(req, hypervisor_id)
        resp.media = {"hypervisor": {**views.summary(req, shown), "uptime": self._uptime(req, shown)}}


class Search(_Resource):
    """/os-hypervisors/{hypervisor_id}/search; the id is a part of host names."""

    @until("2.52")
    def on_get(self, req: Request, resp: falcon.Response, hypervisor_id: str) -> None:
        policy.authorize(req.nova, _API + "search")
        resp.media = {"hypervisors": [views.summary(req, one) for one in self._matching(hypervisor_id)]}

    def _matching(self, pattern: str) -> list[Hypervisor]:
        found = self._db.read(lambda conn: hypervisors.search(conn, self._down_time, pattern))
        if not found:
            raise exception.NotFound(f"No hypervisor matching '{pattern}' could be found.")
        return found


class HypervisorServers(Search):
    """/os-hypervisors/{hypervisor_id}/servers; the id is a part of host names."""

    @until("2.52")
    def on_get(self, req: Request, resp: falcon.Response, hypervisor_id: str) -> None:
        policy.authorize(req.nova, _API + "servers")
        found = self._matching(hypervisor_id)
        servers = self._servers(found)
        resp.media = {"hypervisors": [_with_servers(req, views.summary(req, one), one, servers) for one in found]}


ROUTES: list[tuple[str, type]] = [
    ("/os-hypervisors", Hypervisors),
    ("/os-hypervisors/detail", HypervisorsDetail),
    ("/os-hypervisors/statistics", Statistics),
    ("/os-hypervisors/{hypervisor_id}", HypervisorResource),
    ("/os-hypervisors/{hypervisor_id}/uptime", Uptime),
    ("/os-hypervisors/{hypervisor_id}/search", Search),
    ("/os-hypervisors/{hypervisor_id}/servers", HypervisorServers),
]

# SPDX-License-Identifier: Apache-2.0
"""/os-simple-tenant-usage: what projects used over a time, in hours of servers, CPUs, memory and disk."""

from __future__ import annotations

import datetime

import falcon

from nova_lite import exception, policy
from nova_lite.api import paging
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import usage as schemas
from nova_lite.api.services import Services
from nova_lite.api.views import usage as views
from nova_lite.db import usage
from nova_lite.db.usage import ServerUsage

_API = "os_compute_api:os-simple-tenant-usage:"
_PAGES = Version(2, 40)
_FORMATS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d")

_Span = tuple[datetime.datetime, datetime.datetime]


def _span(query: dict[str, list[str]], now: datetime.datetime) -> _Span:
    """Read from when till when; both are now unless they are given.

    :raises BadRequest: one is not a time, or they are in the wrong order.
    """
    start = _time(query["start"][0]) if "start" in query else now - datetime.timedelta(microseconds=1)
    stop = _time(query["end"][0]) if "end" in query else now
    if start >= stop:
        raise exception.BadRequest("Invalid start time. The start time cannot occur after the end time.")
    return start, stop


def _time(text: str) -> datetime.datetime:
    for form in _FORMATS:
        try:
            return datetime.datetime.strptime(text.strip('"'), form)
        except ValueError:
            continue
    raise exception.BadRequest(f"Datetime is in invalid format: {text[:64]}")


class _Resource:
    def __init__(self, services: Services) -> None:
        self._db = services.db
        self._max_limit: int = services.conf.api.max_limit

    def _search(
        self, req: Request, query: dict[str, list[str]], project_id: str | None
    ) -> tuple[list[ServerUsage], _Span, datetime.datetime, paging.Page]:
        page = paging.page(query if req.version >= _PAGES else {}, self._max_limit)
        limit = page.limit if req.version >= _PAGES else None
        now = self._db.read(usage.clock)
        span = _span(query, now)
        found = self._db.read(lambda conn: usage.search(conn, *span, project_id, limit, page.marker))
        return found, span, now, page


class UsageOfAll(_Resource):
    """/os-simple-tenant-usage"""

    @takes(query=schemas.SEARCH)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "list")
        query = req.query()
        found, (start, stop), now, page = self._search(req, query, None)
        detailed = query.get("detailed", ["0"])[0] == "1"
        projects: dict[str, list[ServerUsage]] = {}
        for server in found:
            projects.setdefault(server.project_id, []).append(server)
        resp.media = {
            "tenant_usages": [
                views.project(project_id, servers, start, stop, now, detailed)
                for project_id, servers in sorted(projects.items())
            ]
        }
        if req.version >= _PAGES and found:
            resp.media |= paging.next_links(req, "os-simple-tenant-usage", found, page, found[-1].uuid, "tenant_usages")


class UsageOfProject(_Resource):
    """/os-simple-tenant-usage/{project_id}"""

    @takes(query=schemas.SEARCH)
    def on_get(self, req: Request, resp: falcon.Response, project_id: str) -> None:
        policy.authorize(req.nova, _API + "show", {"project_id": project_id})
        query = req.query()
        found, (start, stop), now, page = self._search(req, query, project_id)
        # Nova says {} of a project that used nothing, which its own clients cannot show.
        resp.media = {"tenant_usage": views.project(project_id, found, start, stop, now, detailed=True)}
        if req.version >= _PAGES and found:
            resp.media |= paging.next_links(
                req, f"os-simple-tenant-usage/{project_id}", found, page, found[-1].uuid, "tenant_usage"
            )


ROUTES: list[tuple[str, type]] = [
    ("/os-simple-tenant-usage", UsageOfAll),
    ("/os-simple-tenant-usage/{project_id}", UsageOfProject),
]

# SPDX-License-Identifier: Apache-2.0
"""Pages of lists: the query's limit and marker, the time of changes, and the link to what follows."""

from __future__ import annotations

import datetime
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oslo_utils import timeutils

from nova_lite import exception
from nova_lite.api.request import Request


@dataclass(frozen=True, slots=True)
class Page:
    """At most limit rows, those after the one that marker names."""

    limit: int
    marker: str | None = None


def page(query: dict[str, list[str]], max_limit: int) -> Page:
    """Read limit and marker from a validated query (validation.PAGE); no limit means the largest."""
    limits, markers = query.get("limit"), query.get("marker")
    limit = min(int(limits[0]), max_limit) if limits else max_limit
    return Page(limit, markers[0] if markers else None)


def period(query: dict[str, list[str]]) -> tuple[datetime.datetime | None, datetime.datetime | None]:
    """Read changes-since and changes-before from a validated query.

    :raises BadRequest: the one is after the other.
    """
    since, before = _time(query, "changes-since"), _time(query, "changes-before")
    if since and before and since > before:
        raise exception.BadRequest("The value of changes-since must be less than or equal to changes-before.")
    return since, before


def _time(query: dict[str, list[str]], name: str) -> datetime.datetime | None:
    if name not in query:
        return None
    try:
        parsed: datetime.datetime = timeutils.normalize_time(timeutils.parse_isotime(query[name][0]))
    except OverflowError:
        raise exception.BadRequest(f"Invalid filter field: {name}.")
    return parsed


def next_links(
    req: Request, collection: str, shown: Sequence[Any], page: Page, last_id: str, key: str | None = None
) -> dict[str, Any]:
    """Return {"<key>_links": [...]} with the link to the next page, or nothing if this page was not full.

    :param collection: the list's path below the version.
    :param last_id: the id of the page's last row, the marker of the next.
    :param key: what the list is called in the body, unless it is what the path begins with.
    """
    if not shown or len(shown) < page.limit:
        return {}
    parameters = [(k, v) for k, v in urllib.parse.parse_qsl(req.query_string, True) if k != "marker"]
    query = urllib.parse.urlencode([*parameters, ("marker", last_id)])
    href = f"{req.public_url}/v2.1{req.project_segment}/{collection}?{query}"
    name = key or collection.split("/")[0].removeprefix("os-")
    return {f"{name}_links": [{"rel": "next", "href": href}]}

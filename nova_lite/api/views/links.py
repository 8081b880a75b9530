# SPDX-License-Identifier: Apache-2.0
"""Links to resources, and times, as the bodies of answers show them."""

from __future__ import annotations

import datetime

from nova_lite.api.request import Request


def resource(req: Request, collection: str, identifier: str) -> list[dict[str, str]]:
    """Return the links of a resource: to itself at this version, and one that outlives versions."""
    path = f"{req.project_segment}/{collection}/{identifier}"
    return [
        {"rel": "self", "href": f"{req.public_url}/v2.1{path}"},
        {"rel": "bookmark", "href": f"{req.public_url}{path}"},
    ]


def utc(time: datetime.datetime | None) -> str | None:
    """Show a time as servers have it: 2026-01-31T12:00:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ") if time else None


def precise(time: datetime.datetime | None) -> str | None:
    """Show a time as most other resources have it: 2026-01-31T12:00:00.000000."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%f") if time else None

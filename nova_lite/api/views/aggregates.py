# SPDX-License-Identifier: Apache-2.0
"""Aggregates as the API shows them."""

from __future__ import annotations

from typing import Any

from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.views import links
from nova_lite.db.aggregates import Aggregate

_UUIDS = Version(2, 41)


def created(req: Request, aggregate: Aggregate) -> dict[str, Any]:
    """A new aggregate, without hosts and metadata."""
    changed = aggregate.updated_at > aggregate.created_at
    shown: dict[str, Any] = {
        "id": aggregate.id,
        "name": aggregate.name,
        "availability_zone": aggregate.zone,
        "created_at": links.precise(aggregate.created_at),
        "updated_at": links.precise(aggregate.updated_at) if changed else None,
        "deleted": False,
        "deleted_at": None,
    }
    if req.version >= _UUIDS:
        shown["uuid"] = aggregate.uuid
    return shown


def detail(req: Request, aggregate: Aggregate) -> dict[str, Any]:
    return {**created(req, aggregate), "hosts": list(aggregate.hosts), "metadata": aggregate.metadata}

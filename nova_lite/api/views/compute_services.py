# SPDX-License-Identifier: Apache-2.0
"""Services as the API shows them."""

from __future__ import annotations

from typing import Any

from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.views import links
from nova_lite.db.compute_services import Service

_FORCED_DOWN = Version(2, 11)
_UUIDS = Version(2, 53)


def detail(req: Request, service: Service, default_zone: str) -> dict[str, Any]:
    """:param default_zone: the zone of hosts that are in no aggregate with one."""
    shown = {
        "id": service.uuid if req.version >= _UUIDS else service.id,
        "binary": service.binary,
        "host": service.host,
        "zone": service.zone or default_zone,
        "status": "disabled" if service.disabled else "enabled",
        "state": "up" if service.up else "down",
        "updated_at": links.precise(service.last_seen_at),
        "disabled_reason": service.disabled_reason,
    }
    if req.version >= _FORCED_DOWN:
        shown["forced_down"] = service.forced_down
    return shown

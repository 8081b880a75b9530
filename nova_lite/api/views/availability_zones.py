# SPDX-License-Identifier: Apache-2.0
"""Availability zones as the API shows them: what the zones of the services are, and which of them can be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nova_lite.api.views import links
from nova_lite.db.compute_services import Service


def listed(services: Sequence[Service], default_zone: str, detailed: bool) -> list[dict[str, Any]]:
    """A zone is available if a service in it is enabled; hosts are shown of those only, and only in detail."""
    zones: dict[str, list[Service]] = {}
    for service in services:
        zones.setdefault(service.zone or default_zone, []).append(service)
    shown = []
    for name, members in sorted(zones.items()):
        enabled = [service for service in members if not service.disabled]
        shown.append(
            {
                "zoneName": name,
                "zoneState": {"available": bool(enabled)},
                "hosts": _hosts(enabled) if detailed and enabled else None,
            }
        )
    return shown


def _hosts(services: Sequence[Service]) -> dict[str, dict[str, Any]]:
    hosts: dict[str, dict[str, Any]] = {}
    for service in services:
        hosts.setdefault(service.host, {})[service.binary] = {
            "available": service.up,
            "active": not service.disabled,
            "updated_at": links.precise(service.last_seen_at),
        }
    return hosts

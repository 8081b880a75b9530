# SPDX-License-Identifier: Apache-2.0
"""The fields of a server that are only written down, and the columns that keep them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

_COLUMNS = {
    "name": "name",
    "description": "description",
    "hostname": "hostname",
    "OS-DCF:diskConfig": "disk_config",
    "accessIPv4": "access_ip_v4",
    "accessIPv6": "access_ip_v6",
    "user_data": "user_data",
}


def columns(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a body that its schema accepted changes, by column."""
    changes = {column: body[name] for name, column in _COLUMNS.items() if name in body}
    if "access_ip_v6" in changes:
        changes["access_ip_v6"] = shortest(changes["access_ip_v6"])
    return changes


def shortest(address: str | None) -> str | None:
    """Return an IPv6 address as it is shown and looked for: there are many ways to write each."""
    return str(ipaddress.IPv6Address(address)) if address else address

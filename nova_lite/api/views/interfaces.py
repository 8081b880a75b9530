# SPDX-License-Identifier: Apache-2.0
"""The ports of one server, as the Compute API shows them."""

from __future__ import annotations

from typing import Any

from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.views.networks import port_state
from nova_lite.db import addresses
from nova_lite.db.instances import Instance

_TAG = Version(2, 70)


def interfaces(req: Request, row: Instance) -> list[dict[str, Any]]:
    """Show the server's ports: the one that it has on the built-in network, or none."""
    port = addresses.port_of(row.networks)
    if port is None:
        return []
    shown: dict[str, Any] = {
        "port_state": port_state(row.vm_state),
        "port_id": port.id,
        "net_id": port.network_id,
        "mac_addr": port.mac,
        "fixed_ips": [{"subnet_id": port.subnet_id, "ip_address": port.address}],
    }
    if req.version >= _TAG:
        shown["tag"] = port.tag or None
    return [shown]

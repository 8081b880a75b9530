# SPDX-License-Identifier: Apache-2.0
"""The built-in network, its subnet and its ports, as Neutron's API v2.0 shows them."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from nova_lite.api.request import Request
from nova_lite.api.views import links
from nova_lite.db.ports import PortRow
from nova_lite.objects import instance as states
from nova_lite.objects.network import Network

# Nobody's in particular: every project may use the network.
_NOBODY = {"tenant_id": "", "project_id": ""}
_PLAIN: dict[str, Any] = {"description": "", "tags": [], "revision_number": 1}
_UP = (states.ACTIVE, states.PAUSED, states.RESCUED)


def version(req: Request) -> dict[str, Any]:
    """Show the only version there is, for discovery."""
    link = {"rel": "self", "href": f"{req.public_url}/network/v2.0/"}
    return {"id": "v2.0", "status": "CURRENT", "links": [link]}


def network(shown: Network, admin: bool) -> dict[str, Any]:
    """Show the network; how it is wired is for administrators."""
    wiring = {
        "provider:network_type": "flat",
        "provider:physical_network": shown.name,
        "provider:segmentation_id": None,
    }
    return {
        "id": shown.id,
        "name": shown.name,
        **_NOBODY,
        "admin_state_up": True,
        "status": "ACTIVE",
        "shared": True,
        "router:external": False,
        "subnets": [shown.subnet_id],
        "mtu": shown.mtu,
        "port_security_enabled": False,
        "availability_zone_hints": [],
        "availability_zones": [],
        "ipv4_address_scope": None,
        "ipv6_address_scope": None,
        **_PLAIN,
        **(wiring if admin else {}),
    }


def subnet(shown: Network) -> dict[str, Any]:
    """Show the network's subnet."""
    return {
        "id": shown.subnet_id,
        "name": shown.name,
        **_NOBODY,
        "network_id": shown.id,
        "ip_version": 4,
        "cidr": str(shown.subnet),
        "gateway_ip": str(shown.gateway) if shown.gateway else None,
        "allocation_pools": [{"start": str(IPv4Address(shown.first)), "end": str(IPv4Address(shown.last))}],
        "dns_nameservers": list(shown.dns),
        "host_routes": [],
        # Addresses are in the config drive.
        "enable_dhcp": False,
        "subnetpool_id": None,
        "ipv6_ra_mode": None,
        "ipv6_address_mode": None,
        "service_types": [],
        **_PLAIN,
    }


def port(row: PortRow, subnet_id: str, admin: bool) -> dict[str, Any]:
    """Show a server's port; where it is bound is for administrators."""
    binding: dict[str, Any] = {
        "binding:host_id": row.host or "",
        "binding:vif_type": "bridge" if row.host else "unbound",
        "binding:vif_details": {},
        "binding:profile": {},
    }
    return {
        "id": row.port,
        "name": "",
        "network_id": row.network,
        "tenant_id": row.project_id,
        "project_id": row.project_id,
        "mac_address": row.mac,
        "fixed_ips": [{"subnet_id": subnet_id, "ip_address": str(IPv4Address(row.address))}],
        "device_id": row.instance_uuid,
        "device_owner": "compute:nova",
        "admin_state_up": True,
        "status": port_state(row.vm_state),
        "security_groups": [],
        "allowed_address_pairs": [],
        "extra_dhcp_opts": [],
        "port_security_enabled": False,
        "binding:vnic_type": "normal",
        "created_at": links.utc(row.created_at),
        "updated_at": links.utc(row.created_at),
        **_PLAIN,
        **(binding if admin else {}),
    }


def port_state(vm_state: str) -> str:
    """Return the state of the port of a server: up while its guest has one plugged in."""
    return "ACTIVE" if vm_state in _UP else "DOWN"

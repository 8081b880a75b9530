# SPDX-License-Identifier: Apache-2.0
"""What guests and users are told of a server's ports: network_data.json of the config drive, and its addresses.

The first has the schema of https://docs.openstack.org/nova/latest/user/metadata.html, which cloud-init reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any

from nova_lite.objects.network import Port
from nova_lite.virt.driver import Vif

_ANYWHERE = "0.0.0.0"


def of_ports(ports: Sequence[Port]) -> dict[str, Any]:
    """Describe ports that have their addresses."""
    return {
        "links": [_link(port.id, port.mac, port.mtu) for port in ports],
        "networks": [_network(place, port) for place, port in enumerate(ports)],
        "services": [_dns(server) for server in dict.fromkeys(server for port in ports for server in port.dns)],
    }


def of_dhcp(vif: Vif) -> dict[str, Any]:
    """Describe an interface whose address comes by DHCP, if there is any on the bridge."""
    return {
        "links": [_link(vif.port, vif.mac, vif.mtu)],
        "networks": [
            {"id": "network0", "type": "ipv4_dhcp", "link": _link_name(vif.port), "network_id": vif.bridge},
        ],
        "services": [],
    }


def addresses(ports: Sequence[Port]) -> dict[str, list[dict[str, Any]]]:
    """Return the addresses as the API shows them, by network."""
    found: dict[str, list[dict[str, Any]]] = {}
    for port in ports:
        address = {
            "version": 4,
            "addr": port.address,
            "OS-EXT-IPS:type": "fixed",
            "OS-EXT-IPS-MAC:mac_addr": port.mac,
        }
        found.setdefault(port.network, []).append(address)
    return found


def _link_name(port_id: str) -> str:
    return f"tap{port_id[:11]}"


def _link(port_id: str, mac: str, mtu: int | None) -> dict[str, Any]:
    return {"id": _link_name(port_id), "vif_id": port_id, "type": "bridge", "mtu": mtu, "ethernet_mac_address": mac}


def _network(place: int, port: Port) -> dict[str, Any]:
    netmask = str(IPv4Network((0, port.prefix)).netmask)
    routes = [{"network": _ANYWHERE, "netmask": _ANYWHERE, "gateway": port.gateway}] if port.gateway else []
    return {
        "id": f"network{place}",
        "type": "ipv4",
        "link": _link_name(port.id),
        "ip_address": port.address,
        "netmask": netmask,
        "routes": routes,
        "network_id": port.network_id,
        "services": [_dns(server) for server in port.dns],
    }


def _dns(server: str) -> dict[str, str]:
    return {"type": "dns", "address": server}

# SPDX-License-Identifier: Apache-2.0
"""One interface per guest on a Linux bridge of the host, which somebody else has made.

A server with a port of the built-in network has its MAC address and its address from there. Without one (no [network]
subnet) somebody else gives addresses on the bridge; MAC address and port id follow from the instance's uuid then, so
that nothing has to be kept, and every repetition and every host gives the same ones.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from oslo_config import cfg

from nova_lite import exception
from nova_lite.network import network_data
from nova_lite.network.driver import Addresses, NetworkDriver, no_network_data
from nova_lite.objects.instance import Instance
from nova_lite.objects.network import port_id
from nova_lite.virt.driver import Vif

_MAC_PREFIX = "fa:16:3e"  # OpenStack's, which operators know
_INTERFACES = Path("/sys/class/net")


class BridgeNetwork(NetworkDriver):
    """Plugs guests into [network] bridge; a server that asks for no network gets none."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._bridge: str = conf.network.bridge
        self._mtu: int = conf.network.mtu

    def connect(self, instance: Instance) -> tuple[list[Vif], dict[str, Any], Addresses]:
        if instance.networks and all(request.kind == "none" for request in instance.networks):
            return [], no_network_data(), {}
        self._check_bridge()
        ports = instance.ports
        if ports:
            vifs = [Vif(port.id, port.mac, self._bridge, port.mtu) for port in ports]
            return vifs, network_data.of_ports(ports), network_data.addresses(ports)
        vif = Vif(port_id(instance.uuid), mac_address(instance.uuid), self._bridge, self._mtu)
        return [vif], network_data.of_dhcp(vif), {}

    def disconnect(self, instance: Instance) -> None:
        """Do nothing: the interface on the bridge goes away with the guest."""

    def _check_bridge(self) -> None:
        if not is_bridge(self._bridge):
            raise exception.BuildFailed(
                reason=f"the host has no bridge {self._bridge} for the server's network; its operator has to make it "
                "or change [network] bridge."
            )


def is_bridge(name: str) -> bool:
    """Tell whether the name is that of a Linux bridge."""
    return "/" not in name and (_INTERFACES / name / "bridge").is_dir()


def mac_address(instance_uuid: str) -> str:
    """Return the MAC address of an instance's interface; two instances in 16 million share one by chance."""
    digest = hashlib.sha256(instance_uuid.encode()).digest()
    return ":".join([_MAC_PREFIX, *(f"{byte:02x}" for byte in digest[:3])])

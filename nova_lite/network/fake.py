# SPDX-License-Identifier: Apache-2.0
"""The network of the fake hypervisor: servers have their addresses, and nothing is plugged in anywhere."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from nova_lite.network import network_data
from nova_lite.network.driver import Addresses, NetworkDriver
from nova_lite.objects.instance import Instance
from nova_lite.virt.driver import Vif


class FakeNetwork(NetworkDriver):
    """Connects servers in name only."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        pass

    def connect(self, instance: Instance) -> tuple[list[Vif], dict[str, Any], Addresses]:
        vifs = [Vif(port.id, port.mac, None, port.mtu) for port in instance.ports]
        return vifs, network_data.of_ports(instance.ports), network_data.addresses(instance.ports)

    def disconnect(self, instance: Instance) -> None:
        return

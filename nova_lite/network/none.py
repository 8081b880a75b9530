# SPDX-License-Identifier: Apache-2.0
"""No network: guests have no interface."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from nova_lite import exception
from nova_lite.network.driver import Addresses, NetworkDriver, no_network_data
from nova_lite.objects.instance import Instance
from nova_lite.virt.driver import Vif


class NoNetwork(NetworkDriver):
    """Connects nobody."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        pass

    def connect(self, instance: Instance) -> tuple[list[Vif], dict[str, Any], Addresses]:
        if instance.ports:
            raise exception.BuildFailed(
                reason=f"it has the address {instance.ports[0].address}, and its host connects nobody; the operator "
                "has to set [network] driver there, or to leave [network] subnet unset."
            )
        return [], no_network_data(), {}

    def disconnect(self, instance: Instance) -> None:
        return

# SPDX-License-Identifier: Apache-2.0
"""The interface of how guests are connected to networks."""

from __future__ import annotations

import abc
from typing import Any

from nova_lite.objects.instance import Instance
from nova_lite.virt.driver import Vif

# As the API shows them: network name -> addresses, each with addr, version, OS-EXT-IPS:type, OS-EXT-IPS-MAC:mac_addr.
Addresses = dict[str, list[dict[str, Any]]]


def no_network_data() -> dict[str, Any]:
    """Return the network_data of an instance without interfaces."""
    return {"links": [], "networks": [], "services": []}


class NetworkDriver(abc.ABC):
    """Connects instances. Calls may be repeated, and answer the same for the same instance."""

    @abc.abstractmethod
    def connect(self, instance: Instance) -> tuple[list[Vif], dict[str, Any], Addresses]:
        """Make what the instance needs on this host; return its interfaces, network_data and addresses.

        :raises BuildFailed: it cannot be connected here; the message says why.
        """

    @abc.abstractmethod
    def disconnect(self, instance: Instance) -> None:
        """Undo connect; an instance that is not connected is no error."""

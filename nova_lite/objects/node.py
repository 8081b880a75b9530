# SPDX-License-Identifier: Apache-2.0
"""A compute node: what its compute service reports of it, and what the control plane answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nova_lite.objects.resources import Resources


@dataclass(frozen=True, slots=True)
class NodeInventory:
    """What a hypervisor offers, before ratios and reserved amounts.

    uuid is the node's identity, kept on the host's own disk. host is the compute service's name, node the
    hypervisor's host name. cpu_info has the keys that the API shows (arch, model, vendor, topology, features).
    architectures, hypervisor_types and vm_modes are what images may ask for.
    """

    uuid: str
    host: str
    node: str
    total: Resources
    reserved: Resources = Resources()
    cpu_allocation_ratio: float = 1.0
    ram_allocation_ratio: float = 1.0
    disk_allocation_ratio: float = 1.0
    hypervisor_type: str = "fake"
    hypervisor_version: int = 1
    host_ip: str = "127.0.0.1"
    cpu_info: dict[str, Any] = field(default_factory=dict)
    architectures: tuple[str, ...] = ()
    vm_modes: tuple[str, ...] = ("hvm",)


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """What the control plane keeps of a reported node: the ids of its rows."""

    node_id: int
    service_id: int
    host: str
    node: str

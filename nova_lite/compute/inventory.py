# SPDX-License-Identifier: Apache-2.0
"""What a compute service reports of its nodes: the hypervisor's inventory, with the operator's ratios and reserves."""

from __future__ import annotations

import dataclasses

from oslo_config import cfg

from nova_lite.objects.node import NodeInventory
from nova_lite.objects.resources import Resources
from nova_lite.virt.driver import Driver


def collect(conf: cfg.ConfigOpts, driver: Driver) -> list[NodeInventory]:
    """Ask the hypervisor.

    :raises HypervisorUnavailable:
    """
    options = conf.compute
    reserved = Resources(options.reserved_host_cpus, options.reserved_host_memory_mb, options.reserved_host_disk_gb)
    return [
        dataclasses.replace(
            node,
            reserved=reserved,
            cpu_allocation_ratio=options.cpu_allocation_ratio,
            ram_allocation_ratio=options.ram_allocation_ratio,
            disk_allocation_ratio=options.disk_allocation_ratio,
        )
        for node in driver.inventory()
    ]

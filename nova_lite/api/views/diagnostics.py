# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of a server: under libvirt's old names, and in the one shape that every hypervisor has from 2.48 on."""

from __future__ import annotations

from typing import Any

from oslo_utils import timeutils

from nova_lite.db.addresses import has_address
from nova_lite.db.instances import Instance
from nova_lite.objects.diagnostics import Diagnostics, NicCounts


def own_names(shown: Diagnostics) -> dict[str, Any]:
    """Show one flat document whose keys name CPUs, disks and interfaces."""
    found: dict[str, Any] = {f"cpu{number}_time": time for number, time in enumerate(shown.cpu_times)}
    for disk in shown.disks:
        found |= {
            f"{disk.name}_read_req": disk.read_requests,
            f"{disk.name}_read": disk.read_bytes,
            f"{disk.name}_write_req": disk.write_requests,
            f"{disk.name}_write": disk.write_bytes,
            f"{disk.name}_errors": disk.errors,
        }
    for nic in shown.nics:
        found |= {
            f"{nic.name}_rx": nic.rx_bytes,
            f"{nic.name}_rx_packets": nic.rx_packets,
            f"{nic.name}_rx_errors": nic.rx_errors,
            f"{nic.name}_rx_drop": nic.rx_drop,
            f"{nic.name}_tx": nic.tx_bytes,
            f"{nic.name}_tx_packets": nic.tx_packets,
            f"{nic.name}_tx_errors": nic.tx_errors,
            f"{nic.name}_tx_drop": nic.tx_drop,
        }
    return found | {"memory": shown.memory_maximum, "memory-actual": shown.memory_used}


def fixed(row: Instance, shown: Diagnostics) -> dict[str, Any]:
    """Show the shape that does not depend on the hypervisor; null is what it does not measure. Memory is in MiB."""
    return {
        "state": "running",
        "driver": shown.driver,
        "hypervisor": shown.hypervisor,
        "hypervisor_os": "linux",
        "uptime": _uptime(row),
        # Who has an address has it from there.
        "config_drive": bool(row.config_drive) or has_address(row.networks),
        "num_cpus": len(shown.cpu_times),
        "num_disks": len(shown.disks),
        "num_nics": len(shown.nics),
        "cpu_details": [
            {"id": number, "time": time, "utilisation": None} for number, time in enumerate(shown.cpu_times)
        ],
        "memory_details": {"maximum": shown.memory_maximum >> 10, "used": shown.memory_used >> 10},
        "disk_details": [
            {
                "read_bytes": disk.read_bytes,
                "read_requests": disk.read_requests,
                "write_bytes": disk.write_bytes,
                "write_requests": disk.write_requests,
                "errors_count": disk.errors,
            }
            for disk in shown.disks
        ],
        "nic_details": [_nic(nic) for nic in shown.nics],
    }


def _nic(nic: NicCounts) -> dict[str, Any]:
    return {
        "mac_address": nic.mac,
        "rx_octets": nic.rx_bytes,
        "rx_packets": nic.rx_packets,
        "rx_errors": nic.rx_errors,
        "rx_drop": nic.rx_drop,
        "rx_rate": None,
        "tx_octets": nic.tx_bytes,
        "tx_packets": nic.tx_packets,
        "tx_errors": nic.tx_errors,
        "tx_drop": nic.tx_drop,
        "tx_rate": None,
    }


def _uptime(row: Instance) -> int | None:
    """Count from when the guest was made, as Nova does: a reboot is not seen."""
    if row.launched_at is None:
        return None
    return max(0, int(timeutils.delta_seconds(row.launched_at.replace(tzinfo=None), timeutils.utcnow())))

# SPDX-License-Identifier: Apache-2.0
"""Hypervisors as the API shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.db.hypervisors import Hypervisor, Server

_CPU_INFO_IS_AN_OBJECT = Version(2, 28)
_UUIDS = Version(2, 53)
_NO_USAGE = Version(2, 88)


def summary(req: Request, shown: Hypervisor) -> dict[str, Any]:
    return {
        "id": shown.uuid if req.version >= _UUIDS else shown.id,
        "hypervisor_hostname": shown.node,
        "state": "up" if shown.up else "down",
        "status": "disabled" if shown.disabled else "enabled",
    }


def with_servers(view: dict[str, Any], servers: Sequence[Server]) -> dict[str, Any]:
    return {**view, "servers": [{"uuid": server.uuid, "name": server.name} for server in servers]}


def detail(req: Request, shown: Hypervisor) -> dict[str, Any]:
    view = {
        **summary(req, shown),
        "hypervisor_type": shown.hypervisor_type,
        "hypervisor_version": shown.hypervisor_version,
        "host_ip": shown.host_ip,
        "service": {
            "id": shown.service_uuid if req.version >= _UUIDS else shown.service_id,
            "host": shown.host,
            "disabled_reason": shown.disabled_reason,
        },
    }
    if req.version >= _NO_USAGE:
        return {**view, "uptime": None}
    cpu_info = shown.cpu_info if req.version >= _CPU_INFO_IS_AN_OBJECT else json.dumps(shown.cpu_info)
    return {**view, **_usage(shown), "cpu_info": cpu_info}


def _usage(shown: Hypervisor) -> dict[str, Any]:
    """What is reserved for the host itself counts as used."""
    memory_used = shown.used_memory_mb + shown.reserved_memory_mb
    disk_used = shown.used_disk_gb + shown.reserved_disk_gb
    return {
        "vcpus": shown.total_vcpus,
        "vcpus_used": shown.used_vcpus,
        "memory_mb": shown.total_memory_mb,
        "memory_mb_used": memory_used,
        "free_ram_mb": shown.total_memory_mb - memory_used,
        "local_gb": shown.total_disk_gb,
        "local_gb_used": disk_used,
        "free_disk_gb": shown.total_disk_gb - disk_used,
        "disk_available_least": shown.total_disk_gb - disk_used,
        "current_workload": shown.building,
        "running_vms": shown.instances,
    }


def statistics(shown: Sequence[Hypervisor]) -> dict[str, int]:
    """Add up the hypervisors that are enabled."""
    counted = [_usage(one) for one in shown if not one.disabled]
    keys = _usage_keys()
    return {"count": len(counted), **{key: sum(usage[key] for usage in counted) for key in keys}}


def _usage_keys() -> tuple[str, ...]:
    return (
        *("vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "free_ram_mb", "local_gb", "local_gb_used"),
        *("free_disk_gb", "disk_available_least", "current_workload", "running_vms"),
    )

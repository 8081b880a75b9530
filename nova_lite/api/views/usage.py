# SPDX-License-Identifier: Apache-2.0
"""Usage as the API shows it: hours, and hours times sizes."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from nova_lite.api.views import links
from nova_lite.db.usage import ServerUsage


def project(
    project_id: str,
    servers: Sequence[ServerUsage],
    start: datetime.datetime,
    stop: datetime.datetime,
    now: datetime.datetime,
    detailed: bool,
) -> dict[str, Any]:
    """Add up the servers of one project.

    :param now: the database's time, for the uptime of what still runs.
    """
    hours = [_hours(server, start, min(stop, now)) for server in servers]
    shown: dict[str, Any] = {
        "tenant_id": project_id,
        "start": links.precise(start),
        "stop": links.precise(stop),
        "total_hours": sum(hours),
        "total_vcpus_usage": sum(h * server.vcpus for h, server in zip(hours, servers, strict=True)),
        "total_memory_mb_usage": sum(h * server.memory_mb for h, server in zip(hours, servers, strict=True)),
        "total_local_gb_usage": sum(h * server.local_gb for h, server in zip(hours, servers, strict=True)),
    }
    if detailed:
        shown["server_usages"] = [_server(s, h, now) for h, s in zip(hours, servers, strict=True)]
    return shown


def _hours(server: ServerUsage, start: datetime.datetime, stop: datetime.datetime) -> float:
    begin, end = max(server.launched_at, start), min(server.terminated_at or stop, stop)
    return max((end - begin).total_seconds(), 0.0) / 3600


def _server(server: ServerUsage, hours: float, now: datetime.datetime) -> dict[str, Any]:
    return {
        "instance_id": server.uuid,
        "name": server.name,
        "tenant_id": server.project_id,
        "flavor": server.flavor,
        "vcpus": server.vcpus,
        "memory_mb": server.memory_mb,
        "local_gb": server.local_gb,
        "hours": hours,
        "started_at": links.precise(server.launched_at),
        "ended_at": links.precise(server.terminated_at),
        "state": "terminated" if server.terminated_at else server.vm_state,
        "uptime": int(((server.terminated_at or now) - server.launched_at).total_seconds()),
    }

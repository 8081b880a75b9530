# SPDX-License-Identifier: Apache-2.0
"""Limits as the API shows them."""

from __future__ import annotations

from typing import Any

from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.db.quotas import Usage

# The API's name of each limit, the resource, and the last version that shows it.
_LIMITS: tuple[tuple[str, str, Version | None], ...] = (
    ("maxTotalInstances", "instances", None),
    ("maxTotalCores", "cores", None),
    ("maxTotalRAMSize", "ram", None),
    ("maxTotalKeypairs", "key_pairs", None),
    ("maxServerMeta", "metadata_items", None),
    ("maxServerGroups", "server_groups", None),
    ("maxServerGroupMembers", "server_group_members", None),
    ("maxImageMeta", "metadata_items", Version(2, 38)),
    ("maxPersonality", "injected_files", Version(2, 56)),
    ("maxPersonalitySize", "injected_file_content_bytes", Version(2, 56)),
    ("maxTotalFloatingIps", "floating_ips", Version(2, 35)),
    ("maxSecurityGroups", "security_groups", Version(2, 35)),
    ("maxSecurityGroupRules", "security_group_rules", Version(2, 35)),
)
_LAST_WITH_NETWORKS = Version(2, 35)


def absolute(req: Request, limits: dict[str, int], usage: Usage, server_groups: int) -> dict[str, Any]:
    shown = {name: limits[resource] for name, resource, last in _LIMITS if last is None or req.version <= last}
    shown |= {
        "totalInstancesUsed": usage.instances,
        "totalCoresUsed": usage.cores,
        "totalRAMUsed": usage.ram,
        "totalServerGroupsUsed": server_groups,
    }
    if req.version <= _LAST_WITH_NETWORKS:
        shown |= {"totalFloatingIpsUsed": 0, "totalSecurityGroupsUsed": 0}
    return {"limits": {"rate": [], "absolute": shown}}

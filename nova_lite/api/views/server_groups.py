# SPDX-License-Identifier: Apache-2.0
"""Server groups as the API shows them."""

from __future__ import annotations

from typing import Any

from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.db.server_groups import ServerGroup

_OWNERS = Version(2, 13)
_ONE_POLICY = Version(2, 64)


def detail(req: Request, group: ServerGroup, members: list[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": group.uuid, "name": group.name, "members": members}
    if req.version >= _ONE_POLICY:
        shown["policy"] = group.policy
        shown["rules"] = {"max_server_per_host": group.max_server_per_host} if group.has_rule else {}
    else:
        shown["policies"] = [group.policy]
        shown["metadata"] = {}
    if req.version >= _OWNERS:
        shown["project_id"] = group.project_id
        shown["user_id"] = group.user_id
    return shown

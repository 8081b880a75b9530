# SPDX-License-Identifier: Apache-2.0
"""Moves as the API shows them: in the list of all, and as the live migration of a server."""

from __future__ import annotations

from typing import Any

from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.views import links
from nova_lite.db.move_search import IN_PROGRESS
from nova_lite.db.moves import LIVE, Migration

TYPE = Version(2, 23)
UUID = Version(2, 59)
OWNER = Version(2, 80)


def is_live(migration: Migration) -> bool:
    """Tell whether it is a live migration that is under way, which can be looked at and aborted."""
    return migration.type == LIVE and migration.status in IN_PROGRESS


def listed(req: Request, migration: Migration, flavor_ids: tuple[int | None, int | None]) -> dict[str, Any]:
    """Show a move in the list of all.

    :param flavor_ids: the numbers of the old and the new flavor, None for one that is gone.
    """
    shown = {
        **_common(req, migration),
        "instance_uuid": migration.instance_uuid,
        "old_instance_type_id": flavor_ids[0],
        "new_instance_type_id": flavor_ids[1],
    }
    if req.version >= TYPE:
        shown["migration_type"] = migration.type
        if is_live(migration):
            collection = f"servers/{migration.instance_uuid}/migrations"
            shown["links"] = links.resource(req, collection, str(migration.id))
    return shown


def live(req: Request, migration: Migration) -> dict[str, Any]:
    """Show a live migration of a server, with how far it has come."""
    return {
        **_common(req, migration),
        "server_uuid": migration.instance_uuid,
        "memory_total_bytes": migration.memory_total_bytes,
        "memory_processed_bytes": migration.memory_processed_bytes,
        "memory_remaining_bytes": migration.memory_remaining_bytes,
        "disk_total_bytes": migration.disk_total_bytes,
        "disk_processed_bytes": migration.disk_processed_bytes,
        "disk_remaining_bytes": migration.disk_remaining_bytes,
    }


def _common(req: Request, migration: Migration) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": migration.id,
        "source_compute": migration.source_compute,
        "source_node": migration.source_node,
        "dest_compute": migration.dest_compute,
        "dest_host": migration.dest_host,
        "dest_node": migration.dest_node,
        "status": migration.status,
        "created_at": links.precise(migration.created_at),
        "updated_at": links.precise(migration.updated_at),
    }
    if req.version >= UUID:
        shown["uuid"] = migration.uuid
    if req.version >= OWNER:
        shown["user_id"] = migration.user_id
        shown["project_id"] = migration.project_id
    return shown

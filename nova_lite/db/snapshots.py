# SPDX-License-Identifier: Apache-2.0
"""Images of servers, as the api begins them and the conductor ends them.

The image's row is written with the operation that will fill it, and becomes ``active`` or goes away with the
operation's end. An image in Glance has no row here: what is said of rows then does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from nova_lite.db import actions, images, instances, operations
from nova_lite.db.instances import Caller
from nova_lite.db.operations import Operation

# What can be done to a row that has no content yet.
_UNFINISHED = (images.QUEUED, images.SAVING)


def begin(
    conn: sa.Connection,
    uuid: str,
    caller: Caller,
    *,
    kind: str,
    task_state: str,
    image_id: str,
    image: Mapping[str, Any] | None,
    arguments: Mapping[str, Any],
) -> str:
    """Set out to make an image of a server; returns the operation's uuid. A locked server is no obstacle.

    :param image: the columns of the image's row; None for an image in Glance.
    :raises InstanceInvalidState, InstanceNotFound, Conflict: as ``instances.begin_action``.
    """
    free = Caller(caller.project_id, caller.user_id, caller.request_id, may_override_lock=True)
    operation = instances.begin_action(
        conn,
        uuid,
        kind=kind,
        task_state=task_state,
        caller=free,
        vm_states=instances.AT_REST,
        arguments={**arguments, "image_id": image_id, "stored": image is not None},
    )
    create_row(conn, caller, image_id, image)
    return operation


def create_row(conn: sa.Connection, caller: Caller, image_id: str, image: Mapping[str, Any] | None) -> None:
    """Write the image's row, unless it is in Glance, or was written in a commit whose outcome was unknown."""
    if image is not None and not images.exists(conn, image_id):
        images.create(conn, image_id, caller.project_id, dict(image))


def complete(conn: sa.Connection, operation: Operation, power_state: int, content: Mapping[str, Any] | None) -> bool:
    """Publish an image and end its operation; returns whether both were still to be done.

    A user who deleted the image meanwhile has the operation fail; what was uploaded is then nobody's.
    """
    row = instances.lock_if_there(conn, operation.instance_uuid)
    if row is None or not operations.is_active(conn, operation.uuid):
        return False
    if not publish(conn, operation, content):
        actions.fail(conn, operation, "The image was deleted while it was made.", power_state)
        return False
    return actions.complete(conn, operation, power_state, actions.vm_state_of(row.vm_state, power_state))


def publish(conn: sa.Connection, operation: Operation, content: Mapping[str, Any] | None) -> bool:
    """Let the image of an operation be active; tells whether it is."""
    if not operation.arguments["stored"]:
        return True
    image_id = operation.arguments["image_id"]
    images.advance(conn, image_id, _UNFINISHED, images.ACTIVE, **(content or {}))
    return images.exists(conn, image_id, images.ACTIVE)


def fail(conn: sa.Connection, operation: Operation, message: str, power_state: int | None) -> bool:
    """End a snapshot that failed, with its image; the server is what it was."""
    if not actions.fail(conn, operation, message, power_state):
        return False
    images.delete_unfinished(conn, operation.arguments["image_id"])
    return True


def rotate(conn: sa.Connection, operation: Operation) -> list[str]:
    """Delete the oldest backups of a server but for as many as are to be kept; returns their ids."""
    backup = operation.arguments["backup"]
    wanted = images.Search(
        project_id=operation.project_id, equal={"status": (images.ACTIVE,)}, properties=backup["properties"], limit=1000
    )
    found = [image.uuid for image in images.search(conn, wanted) if image.owner == operation.project_id]
    excess = found[backup["rotation"] :]
    for image_id in excess:
        images.delete(conn, image_id)
    return excess

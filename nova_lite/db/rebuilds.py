# SPDX-License-Identifier: Apache-2.0
"""Rebuilds: a server gets a new guest in the place that it has. Neither its allocation nor its quota use is touched.

What the user changes with it (name, metadata, image, ...) is written when the request is accepted. The operation keeps
what stood there before: a rebuild that fails while the old guest is still whole gives the row that back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db import instances, operations
from nova_lite.db.clock import now
from nova_lite.db.instances import Caller, Instance
from nova_lite.db.models import compute_nodes
from nova_lite.db.models import instances as instances_table
from nova_lite.db.operations import Operation
from nova_lite.objects import instance as states
from nova_lite.objects.image import Image
from nova_lite.objects.image_needs import ImageNeeds

_VM_STATES = (states.ACTIVE, states.STOPPED, states.ERROR)
# Columns that describe the guest: what they were is written back if the guest stays as it was.
_OF_THE_GUEST = (
    *("image_ref", "image", "hostname", "key_name", "key_data", "user_data", "injected_files", "metadata"),
)


def begin(conn: sa.Connection, uuid: str, caller: Caller, image: Image, changes: Mapping[str, Any]) -> str:
    """Set out to rebuild a server from an image; returns the operation's uuid.

    :param changes: column -> value of what else is new.
    :raises BadRequest: the server's host cannot run the image.
    :raises InstanceLocked, InstanceInvalidState, InstanceNotFound, Conflict: as ``instances.begin_action``.
    """
    row = instances.lock(conn, uuid)
    operation = instances.begin_action(
        conn,
        uuid,
        kind=operations.REBUILD,
        task_state=states.REBUILDING,
        caller=caller,
        vm_states=_VM_STATES,
        arguments={
            "stopped": row.vm_state == states.STOPPED,
            "before": {name: getattr(row, name) for name in _OF_THE_GUEST},
        },
    )
    _check_host(conn, row, image)
    values = {**changes, "image_ref": image.id, "image": msgspec.json.encode(image).decode()}
    conn.execute(sa.update(instances_table).where(instances_table.c.id == row.id).values(**values, updated_at=now()))
    return operation


def _check_host(conn: sa.Connection, row: Instance, image: Image) -> None:
    """Refuse what the scheduler's filter of image properties would keep from the host."""
    needs = ImageNeeds.of(image.properties)
    if not needs:
        return
    columns = (compute_nodes.c.architectures, compute_nodes.c.hypervisor_type, compute_nodes.c.vm_modes)
    node = conn.execute(sa.select(*columns).where(compute_nodes.c.id == row.node_id)).one_or_none()
    if node is not None and not needs.met_by(json.loads(node[0]), node[1], json.loads(node[2])):
        raise exception.BadRequest(
            f"The host of the server is unable to run what the image asks for ({needs}). Choose another image, or "
            "create a new server of this one."
        )


def before(operation: Operation) -> dict[str, Any]:
    """Return the columns as they were when the rebuild was accepted."""
    return dict(operation.arguments["before"])

# SPDX-License-Identifier: Apache-2.0
"""Shelving: a server becomes an image, gives its place back, and is built from the image again wherever there is room.

    ACTIVE ──image──> SHELVED ──domain gone──> SHELVED_OFFLOADED ──scheduled, built──> ACTIVE
                         └───────────────── started where it is ───────────────────────┘

The image is named in the row from the transaction that says SHELVED to the one that says ACTIVE. A server that is
SHELVED_OFFLOADED has neither host nor allocation: both go in the transaction that says so. Its quota stays used.
"""

from __future__ import annotations

import json
import uuid as uuid_module
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db import actions, allocations, images, instances, operations, snapshots
from nova_lite.db.clock import now
from nova_lite.db.instances import Caller, Instance
from nova_lite.db.models import instances as instances_table
from nova_lite.db.operations import Operation
from nova_lite.objects import instance as states
from nova_lite.objects.image import Image

_NO_PLACE: dict[str, Any] = {"host": None, "node": None, "node_id": None}
_NOT_SHELVED: dict[str, Any] = {"shelved_image": None, "shelved_at": None}


@dataclass(frozen=True, slots=True)
class Wish:
    """Where an unshelved server shall go. repin tells whether zone is asked for at all; None is any zone then."""

    repin: bool = False
    zone: str | None = None
    host: str | None = None

    def __bool__(self) -> bool:
        return self.repin or self.host is not None


def begin_shelve(
    conn: sa.Connection, uuid: str, caller: Caller, image_id: str, image: Mapping[str, Any], *, stored: bool
) -> str:
    """Set out to shelve a server; returns the operation's uuid.

    :param image: the columns of the image's row.
    :param stored: whether it has one, and is not in Glance.
    :raises InstanceLocked, InstanceInvalidState, InstanceNotFound, Conflict: as ``instances.begin_action``.
    """
    row = instances.lock(conn, uuid)
    operation = instances.begin_action(
        conn,
        uuid,
        kind=operations.SHELVE,
        task_state=states.SHELVING,
        caller=caller,
        vm_states=instances.AT_REST,
        arguments={"image_id": image_id, "stored": stored, "image": dict(image), "was": row.vm_state},
    )
    snapshots.create_row(conn, caller, image_id, image if stored else None)
    return operation


def begin_unshelve(conn: sa.Connection, uuid: str, caller: Caller, wish: Wish) -> str:
    """Set out to unshelve a server; returns the operation's uuid.

    :raises InstanceLocked, InstanceInvalidState, InstanceNotFound: as ``instances.begin_action``.
    :raises Conflict: a place is asked for, and the server has one.
    """
    row = instances.lock(conn, uuid)
    before = instances.accepted_before(conn, operations.UNSHELVE, uuid, caller)
    if before:
        return before
    instances.check_lock(row, caller)
    instances.check_state(row, operations.UNSHELVE, (states.SHELVED, states.SHELVED_OFFLOADED))
    if wish and row.vm_state != states.SHELVED_OFFLOADED:
        raise exception.Conflict(
            f"Specifying an availability zone or a host when unshelving server {uuid} with status {row.vm_state} is "
            f"not supported. The server status must be {states.SHELVED_OFFLOADED}."
        )
    values: dict[str, Any] = {"requested_zone": wish.zone} if wish.repin else {}
    conn.execute(
        sa.update(instances_table)
        .where(instances_table.c.id == row.id)
        .values(task_state=states.UNSHELVING, updated_at=now(), **values)
    )
    arguments = {
        "offloaded": row.vm_state == states.SHELVED_OFFLOADED,
        "host": wish.host,
        "image": json.loads(row.shelved_image or "null"),
    }
    return instances.add_operation(conn, operations.UNSHELVE, [uuid], caller, arguments)[0]


def publish_shelved(
    conn: sa.Connection, operation: Operation, power_state: int, content: Mapping[str, Any] | None, *, go_on: bool
) -> bool:
    """Say that a server is SHELVED; returns whether that was still to be said, and the image is there.

    :param go_on: whether it is to give its place back at once, in the same operation.
    """
    row = instances.lock_if_there(conn, operation.instance_uuid)
    if row is None or not operations.is_active(conn, operation.uuid) or row.vm_state == states.SHELVED:
        return False
    if not snapshots.publish(conn, operation, content):
        actions.fail(conn, operation, "The image was deleted while it was made.", power_state)
        return False
    values: dict[str, Any] = {"shelved_image": _image_text(operation, content), "shelved_at": now()}
    if not go_on:
        return actions.complete(conn, operation, power_state, states.SHELVED, **values)
    conn.execute(
        sa.update(instances_table)
        .where(instances_table.c.id == row.id)
        .values(
            vm_state=states.SHELVED,
            task_state=states.SHELVING_OFFLOADING,
            power_state=power_state,
            updated_at=now(),
            **values,
        )
    )
    operations.finish_steps(conn, [operation.id])
    operations.begin_again(conn, operation.uuid)
    return True


def _image_text(operation: Operation, content: Mapping[str, Any] | None) -> str:
    """Return what the server will be built from, as the row keeps it."""
    described, known = operation.arguments["image"], content or {}
    image = Image(
        id=operation.arguments["image_id"],
        name=described["name"],
        disk_format=described["disk_format"],
        container_format=described["container_format"],
        size=known.get("size"),
        checksum=known.get("checksum"),
        min_disk=described["min_disk"],
        min_ram=described["min_ram"],
        owner=operation.project_id,
        visibility=described["visibility"],
        properties=described["properties"],
    )
    return msgspec.json.encode(image).decode()


def publish_offloaded(conn: sa.Connection, operation: Operation) -> bool:
    """Give a shelved server's place back, and say so; returns whether that was still to be done."""
    if not operations.is_active(conn, operation.uuid):
        return False
    allocations.release(conn, [operation.instance_uuid])
    done = actions.complete(conn, operation, states.NOSTATE, states.SHELVED_OFFLOADED, **_NO_PLACE)
    if not done:
        raise operations.Moved("the offload ended meanwhile")
    return True


def publish_unshelved(conn: sa.Connection, operation: Operation, power_state: int) -> bool:
    """Say that a server runs again that had kept its place; its image goes."""
    if not actions.complete(conn, operation, power_state, states.ACTIVE, **_NOT_SHELVED):
        return False
    forget_image(conn, operation)
    return True


def forget_image(conn: sa.Connection, operation: Operation) -> list[str]:
    """Delete the image that a server was unshelved from; returns its id, whose content is to be removed as well."""
    image = operation.arguments.get("image")
    if not image:
        return []
    images.delete(conn, image["id"])
    return [str(image["id"])]


def image_of(row: Instance) -> str | None:
    """Return the id of the image that a shelved server is kept in."""
    return str(json.loads(row.shelved_image)["id"]) if row.shelved_image else None


def due(conn: sa.Connection, seconds: float, limit: int) -> list[Instance]:
    """Return servers that have been shelved for longer, still have their places, and are at rest."""
    statement = (
        sa.select(*instances.COLUMNS)
        .where(
            instances_table.c.shelved_at < now(-seconds),
            instances_table.c.vm_state == states.SHELVED,
            instances_table.c.task_state.is_(None),
            instances_table.c.deleted == 0,
        )
        .order_by(instances_table.c.shelved_at)
        .limit(limit)
    )
    return [Instance._make(row) for row in conn.execute(statement)]


def begin_offload_of_due(conn: sa.Connection, row: Instance) -> str:
    """Set out to take a server's place that has been shelved for long enough; returns the operation's uuid.

    :raises InstanceInvalidState: it is not shelved any more, or another conductor was first.
    """
    caller = Caller(row.project_id, row.user_id, f"req-{uuid_module.uuid4()}", may_override_lock=True)
    return instances.begin_action(
        conn,
        row.uuid,
        kind=operations.SHELVE_OFFLOAD,
        task_state=states.SHELVING_OFFLOADING,
        caller=caller,
        vm_states=(states.SHELVED,),
    )


def offloaded(conn: sa.Connection, uuids: Collection[str]) -> set[str]:
    """Return those of the servers that have no place anywhere: the proof that what is left of them on a host may go."""
    if not uuids:
        return set()
    mine = sa.and_(
        instances_table.c.uuid.in_(uuids),
        instances_table.c.vm_state == states.SHELVED_OFFLOADED,
        instances_table.c.task_state.is_(None),
        instances_table.c.host.is_(None),
        instances_table.c.deleted == 0,
    )
    return set(conn.execute(sa.select(instances_table.c.uuid).where(mine)).scalars())

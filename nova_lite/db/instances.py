# SPDX-License-Identifier: Apache-2.0
"""Instances: their rows, and the transactions in which a user's request becomes state and an operation.

Whatever accepts a request (``create``, ``begin_action``, ``begin_delete``) writes the state and the operation that
will bring it about in one transaction: a request is either on the books as a whole or not at all. Each may be run
again after a commit whose outcome is unknown, and then finds its own work instead of repeating it. Locks are taken in
the order that db/grants.py states; a project's quota row comes after the groups and before the instances.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from oslo_config import cfg

from nova_lite import exception
from nova_lite.db import addresses, images, operations, quotas
from nova_lite.db.clock import Timestamp, now
from nova_lite.db.models import instance_tags, instances, migrations, server_groups
from nova_lite.db.models import operations as operations_table
from nova_lite.objects import instance as objects
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.group import Group
from nova_lite.objects.image import Image
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.resources import Resources


class Instance(NamedTuple):
    """One row of instances, column by column; documents are still JSON text."""

    id: int
    uuid: str
    project_id: str
    user_id: str
    name: str
    description: str | None
    hostname: str
    image_ref: str | None
    image: str
    flavorid: str
    flavor: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    vm_state: str
    task_state: str | None
    power_state: int
    host: str | None
    node: str | None
    node_id: int | None
    requested_zone: str | None
    requested_host: str | None
    requested_node: str | None
    group_id: int | None
    scheduler_hints: str
    key_name: str | None
    key_data: str | None
    user_data: str | None
    injected_files: str | None
    config_drive: bool
    metadata: str
    networks: str
    addresses: str
    disk_config: str
    access_ip_v4: str | None
    access_ip_v6: str | None
    root_device_name: str | None
    reservation_id: str
    launch_index: int
    locked_by: str | None
    locked_reason: str | None
    fault_code: int | None
    fault_message: str | None
    fault_details: str | None
    fault_at: datetime.datetime | None
    created_at: datetime.datetime
    updated_at: datetime.datetime
    launched_at: datetime.datetime | None
    terminated_at: datetime.datetime | None
    deleted_at: datetime.datetime | None
    deleted: int
    shelved_image: str | None
    shelved_at: datetime.datetime | None


COLUMNS = tuple(instances.c[name] for name in Instance._fields)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as an operation notes it. may_override_lock: a locked server does not stop them."""

    project_id: str
    user_id: str
    request_id: str
    may_override_lock: bool = False


@dataclass(frozen=True, slots=True)
class NewInstances:
    """What a create asks for: as many alike servers as there are uuids, at least min_count of them.

    names and hostnames are as long as uuids. hints are what the user gave, as lists of strings. group_id is the row's
    id of the server group that they join, group_members the quota of such a group's members (-1: unlimited). A port
    among the networks is one at an address that is asked for by name, which is for a single server.
    """

    uuids: Sequence[str]
    names: Sequence[str]
    hostnames: Sequence[str]
    flavor: Flavor
    image: Image | None
    reservation_id: str
    min_count: int = 1
    description: str | None = None
    requested_zone: str | None = None
    requested_host: str | None = None
    requested_node: str | None = None
    group_id: int | None = None
    group_members: int = -1
    hints: dict[str, list[str]] = field(default_factory=dict)
    key_name: str | None = None
    key_data: str | None = None
    user_data: str | None = None
    injected_files: tuple[tuple[str, str], ...] = ()
    config_drive: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    networks: tuple[objects.NetworkRequest, ...] = ()
    disk_config: str = "MANUAL"
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    tags: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Created:
    """The servers that were accepted, and their operations, in the same order."""

    uuids: list[str]
    operations: list[str]


# Built once, since building a statement costs more than executing it.
_first = sa.select(sa.func.count()).where(instances.c.uuid == sa.bindparam("first")).scalar_subquery()
_TIME_AND_DONE = sa.select(sa.type_coerce(now(), Timestamp), _first)
_INSERT = sa.insert(instances)
_BY_UUID = sa.select(*COLUMNS).where(instances.c.uuid == sa.bindparam("uuid"))
_LOCKED = _BY_UUID.with_for_update()
_BY_UUIDS = (
    sa.select(*COLUMNS).where(instances.c.uuid.in_(sa.bindparam("uuids", expanding=True))).order_by(instances.c.id)
)
_UNDELETED_BY_UUIDS = _BY_UUIDS.where(instances.c.deleted == 0)

# The states in which a user may change what is written down of a server.
AT_REST = (objects.ACTIVE, objects.PAUSED, objects.SUSPENDED, objects.STOPPED)


def create(conn: sa.Connection, conf: cfg.ConfigOpts, new: NewInstances, caller: Caller) -> Created:
    """Write instances that wait to be scheduled, with their tags, their operations and their quota use.

    If the quota allows fewer than all, but at least min_count, the first so many are written.

    :raises QuotaExceeded: the project or the group has no room for min_count; nothing is written.
    :raises ServerGroupNotFound: the group was deleted meanwhile.
    :raises BadRequest: the address that is asked for is another server's.
    """
    at, done = conn.execute(_TIME_AND_DONE, {"first": new.uuids[0]}).one()
    if done:
        return _created_before(conn, new)
    if new.group_id is not None:
        _check_group(conn, new.group_id, new.group_members, len(new.uuids))
    count = _reserve(conn, conf, new, caller)
    conn.execute(_INSERT, [_values(new, place, caller, at) for place in range(count)])
    uuids = list(new.uuids[:count])
    if new.tags:
        rows = [{"instance_uuid": uuid, "tag": tag} for uuid in uuids for tag in sorted(set(new.tags))]
        conn.execute(sa.insert(instance_tags), rows)
    for request in new.networks:
        if request.port is not None:
            addresses.reserve(conn, uuids[0], request.port, int(IPv4Address(request.port.address)))
    return Created(uuids, add_operation(conn, operations.CREATE, uuids, caller, at=at))


def _created_before(conn: sa.Connection, new: NewInstances) -> Created:
    statement = sa.select(operations_table.c.instance_uuid, operations_table.c.uuid).where(
        operations_table.c.instance_uuid.in_(new.uuids), operations_table.c.kind == operations.CREATE
    )
    found = {row[0]: row[1] for row in conn.execute(statement)}
    uuids = [uuid for uuid in new.uuids if uuid in found]
    return Created(uuids, [found[uuid] for uuid in uuids])


def _check_group(conn: sa.Connection, group_id: int, limit: int, wanted: int) -> None:
    """Lock the group, so that two requests do not both take its last place."""
    locked = sa.select(server_groups.c.id).where(server_groups.c.id == group_id).with_for_update()
    if conn.execute(locked).first() is None:
        raise exception.ServerGroupNotFound(uuid=group_id)
    if limit < 0:
        return
    members = sa.select(sa.func.count()).where(instances.c.group_id == group_id, instances.c.deleted == 0)
    used = conn.execute(members).scalar_one()
    if used + wanted > limit:
        raise exception.QuotaExceeded(resource="server_group_members", requested=wanted, used=used, limit=limit)


def _reserve(conn: sa.Connection, conf: cfg.ConfigOpts, new: NewInstances, caller: Caller) -> int:
    """Take quota for as many of the servers as it allows; return how many.

    How many fit is searched bit by bit: rare, and it needs no second reading of the limits.
    """
    vcpus, memory_mb = new.flavor.vcpus, new.flavor.memory_mb

    def reserve(count: int) -> None:
        quotas.reserve(conn, conf, caller.project_id, count, count * vcpus, count * memory_mb, caller.user_id)

    def fits(count: int) -> bool:
        try:
            reserve(count)
        except exception.QuotaExceeded:
            return False
        return True

    most, count = len(new.uuids), min(new.min_count, len(new.uuids))
    if count < most and fits(most):
        return most
    reserve(count)
    step = 1 << (most - count).bit_length()
    while step := step >> 1:
        if count + step < most and fits(step):
            count += step
    return count


def _values(new: NewInstances, place: int, caller: Caller, at: datetime.datetime) -> dict[str, Any]:
    amounts = new.flavor.resources
    return {
        "uuid": new.uuids[place],
        "project_id": caller.project_id,
        "user_id": caller.user_id,
        "name": new.names[place],
        "description": new.description,
        "hostname": new.hostnames[place],
        "image_ref": new.image.id if new.image else None,
        "image": msgspec.json.encode(new.image).decode(),
        "flavorid": new.flavor.flavorid,
        "flavor": msgspec.json.encode(new.flavor).decode(),
        "vcpus": amounts.vcpus,
        "memory_mb": amounts.memory_mb,
        "disk_gb": amounts.disk_gb,
        "vm_state": objects.BUILDING,
        "task_state": objects.SCHEDULING,
        "power_state": objects.NOSTATE,
        "requested_zone": new.requested_zone,
        "requested_host": new.requested_host,
        "requested_node": new.requested_node,
        "group_id": new.group_id,
        "scheduler_hints": json.dumps(new.hints),
        "key_name": new.key_name,
        "key_data": new.key_data,
        "user_data": new.user_data,
        "injected_files": json.dumps(new.injected_files) if new.injected_files else None,
        "config_drive": new.config_drive,
        "metadata": json.dumps(new.metadata),
        "networks": msgspec.json.encode(new.networks).decode(),
        "addresses": "{}",
        "disk_config": new.disk_config,
        "access_ip_v4": new.access_ip_v4,
        "access_ip_v6": new.access_ip_v6,
        "reservation_id": new.reservation_id,
        "launch_index": place,
        "deleted": 0,
        "created_at": at,
        "updated_at": at,
    }


def add_operation(
    conn: sa.Connection,
    kind: str,
    uuids: Sequence[str],
    caller: Caller,
    arguments: dict[str, Any] | None = None,
    at: datetime.datetime | None = None,
) -> list[str]:
    """Add the caller's operation on each of the instances; return the operations' uuids."""
    return operations.add(
        conn,
        kind,
        uuids,
        project_id=caller.project_id,
        user_id=caller.user_id,
        request_id=caller.request_id,
        arguments=arguments,
        at=at,
    )


def get(conn: sa.Connection, uuid: str, include_deleted: bool = False) -> Instance:
    """Return the instance.

    :raises InstanceNotFound: there is none, or it is deleted.
    """
    row = conn.execute(_BY_UUID, {"uuid": uuid}).one_or_none()
    if row is None or (row.deleted and not include_deleted):
        raise exception.InstanceNotFound(uuid=uuid)
    return Instance._make(row)


def get_many(conn: sa.Connection, uuids: Sequence[str], include_deleted: bool = False) -> list[Instance]:
    """Return those of the instances that exist, the oldest first."""
    statement = _BY_UUIDS if include_deleted else _UNDELETED_BY_UUIDS
    return [Instance._make(row) for row in conn.execute(statement, {"uuids": uuids})]


def lock_any(conn: sa.Connection, uuid: str) -> Instance | None:
    """Lock the row of an instance that is not deleted, and return it as the last holder of the lock left it."""
    row = conn.execute(_LOCKED, {"uuid": uuid}).one_or_none()
    return None if row is None or row.deleted else Instance._make(row)


def lock(conn: sa.Connection, uuid: str) -> Instance:
    """Do what ``lock_any`` does for a caller who cannot do without.

    :raises InstanceNotFound: there is none, or it is deleted.
    """
    row = lock_any(conn, uuid)
    if row is None:
        raise exception.InstanceNotFound(uuid=uuid)
    return row


def lock_if_there(conn: sa.Connection, uuid: str) -> Instance | None:
    """Lock the row of an instance and return it; None if there is none, or it is deleted."""
    row = conn.execute(_LOCKED, {"uuid": uuid}).one_or_none()
    return None if row is None or row.deleted else Instance._make(row)


def update(conn: sa.Connection, uuid: str, **values: Any) -> Instance:
    """Change columns of an instance; return the row as it is afterwards.

    :raises InstanceNotFound: there is none, or it is deleted.
    """
    lock(conn, uuid)
    conn.execute(sa.update(instances).where(instances.c.uuid == uuid).values(**values, updated_at=now()))
    return get(conn, uuid)


def check_lock(row: Instance, caller: Caller) -> None:
    """Refuse to touch a locked server, except for those whom the lock does not bind.

    :raises InstanceLocked: it is locked.
    """
    if row.locked_by and not caller.may_override_lock:
        raise exception.InstanceLocked(uuid=row.uuid)


def check_state(
    row: Instance, action: str, vm_states: Collection[str] | None, task_states: Collection[str | None] | None = (None,)
) -> None:
    """Refuse an action that the server's state does not allow; None allows all.

    :raises InstanceInvalidState: vm_state or task_state is none of these.
    """
    for attribute, state, allowed in (
        ("vm_state", row.vm_state, vm_states),
        ("task_state", row.task_state, task_states),
    ):
        if allowed is not None and state not in allowed:
            raise exception.InstanceInvalidState(action=action, uuid=row.uuid, attribute=attribute, state=state)


def begin_action(
    conn: sa.Connection,
    uuid: str,
    *,
    kind: str,
    task_state: str,
    caller: Caller,
    vm_states: Collection[str],
    task_states: Collection[str | None] = (None,),
    arguments: dict[str, Any] | None = None,
) -> str:
    """Set out to do something to a server that is on a host: lock, check, set task_state, add the operation.

    If a task is in progress that the action may interrupt (task_states allows it), that task's operation is cancelled.

    :param kind: the operation's kind, by the name that the API shows as the action.
    :returns: the operation's uuid.
    :raises InstanceNotFound: there is no such server.
    :raises InstanceLocked: it is locked, and that binds the caller.
    :raises InstanceInvalidState: its vm_state or task_state is none of these.
    :raises Conflict: it is on no host.
    """
    row = lock(conn, uuid)
    before = accepted_before(conn, kind, uuid, caller)
    if before:
        return before
    check_lock(row, caller)
    if row.host is None:
        raise exception.Conflict(f"Instance {uuid} is not ready: it is on no host.")
    check_state(row, kind, vm_states, task_states)
    if row.task_state is not None:
        operations.cancel_others(conn, uuid, f"Interrupted by {kind}.")
    statement = sa.update(instances).where(instances.c.id == row.id)
    conn.execute(statement.values(task_state=task_state, updated_at=now()))
    return add_operation(conn, kind, [uuid], caller, arguments)[0]


def accepted_before(conn: sa.Connection, kind: str, uuid: str, caller: Caller) -> str | None:
    """Return the operation that this very request has added already, in a commit whose outcome was unknown."""
    statement = sa.select(operations_table.c.uuid).where(
        operations_table.c.instance_uuid == uuid,
        operations_table.c.request_id == caller.request_id,
        operations_table.c.kind == kind,
    )
    return conn.execute(statement).scalars().first()


def begin_delete(conn: sa.Connection, uuid: str, caller: Caller) -> str:
    """Set out to delete a server, whatever it is doing; every other operation on it ends here.

    Deleting a server that is being deleted is no error: the operation that does it is returned again.

    :returns: the operation's uuid.
    :raises InstanceNotFound: there is no such server (any more).
    :raises InstanceLocked: it is locked, and that binds the caller.
    """
    row = lock(conn, uuid)
    check_lock(row, caller)
    if row.task_state == objects.DELETING:
        active = sa.select(operations_table.c.uuid).where(
            operations_table.c.instance_uuid == uuid,
            operations_table.c.kind == operations.DELETE,
            operations_table.c.status == operations.ACTIVE,
        )
        found = conn.execute(active).scalars().first()
        if found:
            return found
    if row.task_state is not None:
        images.delete_of_cancelled(conn, uuid)
    if row.shelved_image:
        images.delete(conn, json.loads(row.shelved_image)["id"])
    operations.cancel_others(conn, uuid, "The server is being deleted.")
    statement = sa.update(instances).where(instances.c.id == row.id)
    conn.execute(statement.values(task_state=objects.DELETING, updated_at=now()))
    return add_operation(conn, operations.DELETE, [uuid], caller)[0]


def set_lock(conn: sa.Connection, uuid: str, caller: Caller, locked_by: str | None, reason: str | None = None) -> None:
    """Lock a server (locked_by is owner or admin) or unlock it (None), and note it among its actions."""
    row, kind = lock(conn, uuid), "lock" if locked_by else "unlock"
    if accepted_before(conn, kind, uuid, caller):
        return
    statement = sa.update(instances).where(instances.c.id == row.id)
    conn.execute(statement.values(locked_by=locked_by, locked_reason=reason, updated_at=now()))
    done = add_operation(conn, kind, [uuid], caller)
    operations.finish(conn, done, operations.SUCCEEDED)


def reset_state(conn: sa.Connection, uuid: str, vm_state: str) -> None:
    """Set a server's state as an administrator says it is; whatever was being done to it is given up.

    :raises Conflict: it is being moved. Where it is then, its row alone does not tell, and what is on the other host
        must not be taken for a leftover; a move ends by itself.
    """
    row = lock(conn, uuid)
    under_way = sa.and_(migrations.c.open.is_(True), migrations.c.status != "done")
    moving = sa.select(migrations.c.type, migrations.c.status).where(migrations.c.instance_uuid == uuid, under_way)
    if move := conn.execute(moving).first():
        raise exception.Conflict(
            f"Instance {uuid} is being moved ({move.type}, {move.status}). Wait until that has ended, or end it: "
            "confirm, revert or abort."
        )
    if row.task_state is not None:
        images.delete_of_cancelled(conn, uuid)
    operations.cancel_others(conn, uuid, "An administrator reset the server's state.")
    statement = sa.update(instances).where(instances.c.id == row.id)
    conn.execute(statement.values(vm_state=vm_state, task_state=None, updated_at=now()))


def set_metadata(
    conn: sa.Connection,
    uuid: str,
    caller: Caller,
    items: dict[str, str],
    *,
    replace: bool,
    limit: int,
) -> dict[str, str]:
    """Add metadata items to a server's, or put them in the place of all it has; return what it has now.

    :param limit: how many items a server may have; -1 is unlimited.
    :raises QuotaExceeded: it would have more.
    :raises InstanceInvalidState: the server is not at rest.
    """
    row = lock(conn, uuid)
    check_lock(row, caller)
    check_state(row, "update metadata", AT_REST)
    before: dict[str, str] = {} if replace else json.loads(row.metadata)
    after = before | items
    if 0 <= limit < len(after):
        raise exception.QuotaExceeded(
            resource="metadata_items", requested=len(after) - len(before), used=len(before), limit=limit
        )
    _write_metadata(conn, row, after)
    return after


def delete_metadata_item(conn: sa.Connection, uuid: str, caller: Caller, key: str) -> None:
    """Remove one metadata item.

    :raises NotFound: the server has no such item.
    :raises InstanceInvalidState: the server is not at rest.
    """
    row = lock(conn, uuid)
    check_lock(row, caller)
    metadata: dict[str, str] = json.loads(row.metadata)
    if key not in metadata:
        raise exception.NotFound("Metadata item was not found")
    check_state(row, "delete metadata", AT_REST)
    del metadata[key]
    _write_metadata(conn, row, metadata)


def _write_metadata(conn: sa.Connection, row: Instance, metadata: dict[str, str]) -> None:
    statement = sa.update(instances).where(instances.c.id == row.id)
    conn.execute(statement.values(metadata=json.dumps(metadata), updated_at=now()))


_flavor_decoder = msgspec.json.Decoder(Flavor)
_image_decoder = msgspec.json.Decoder(Image | None)
_networks_decoder = msgspec.json.Decoder(tuple[objects.NetworkRequest, ...])


def flavor_from(text: str) -> Flavor:
    """Read the flavor column: the flavor that an instance pinned."""
    return _flavor_decoder.decode(text)


def flavor_of(row: Instance) -> Flavor:
    """Return the flavor that the instance pinned."""
    return flavor_from(row.flavor)


def image_from(text: str) -> Image | None:
    """Read the image column: the image that an instance pinned."""
    return _image_decoder.decode(text)


def image_of(row: Instance) -> Image | None:
    """Return the image as it was when the instance was created."""
    return image_from(row.image)


def to_object(row: Instance, host: str | None = None, node: str | None = None) -> objects.Instance:
    """Make what a compute service is told of the instance.

    :param host: where it will be, if that is not in the row yet; with node, the hypervisor's host name.
    """
    return objects.Instance(
        uuid=row.uuid,
        name=row.name,
        hostname=row.hostname,
        project_id=row.project_id,
        user_id=row.user_id,
        flavor=flavor_of(row),
        node=node or row.node or "",
        host=host or row.host or "",
        image=image_of(row),
        availability_zone=row.requested_zone,
        metadata=json.loads(row.metadata),
        key_name=row.key_name,
        key_data=row.key_data,
        user_data=row.user_data,
        injected_files=tuple((path, content) for path, content in json.loads(row.injected_files or "[]")),
        config_drive=bool(row.config_drive),
        launch_index=row.launch_index,
        networks=_networks_decoder.decode(row.networks),
    )


def to_request_spec(
    row: Instance,
    group: Group | None = None,
    *,
    excluded_hosts: Iterable[str] = (),
    request_id: str | None = None,
) -> RequestSpec:
    """Make what the scheduler is asked for a boot of the instance.

    :param group: the server group of row.group_id.
    :param excluded_hosts: hosts that were tried and failed.
    """
    image = image_of(row)
    return RequestSpec(
        consumer=row.uuid,
        project_id=row.project_id,
        resources=Resources(row.vcpus, row.memory_mb, row.disk_gb),
        flavor=flavor_of(row),
        group=group,
        availability_zone=row.requested_zone,
        image_properties=image.properties if image else {},
        hints=json.loads(row.scheduler_hints),
        requested_host=row.requested_host,
        requested_node=row.requested_node,
        excluded_hosts=tuple(excluded_hosts),
        request_id=request_id,
    )


def groups_of(conn: sa.Connection, rows: Iterable[Instance]) -> dict[int, Group]:
    """Return the server groups of the instances by the groups' ids, in one statement or none."""
    ids = sorted({row.group_id for row in rows if row.group_id is not None})
    if not ids:
        return {}
    columns = (server_groups.c.id, server_groups.c.uuid, server_groups.c.policy, server_groups.c.max_server_per_host)
    found = conn.execute(sa.select(*columns).where(server_groups.c.id.in_(ids)))
    return {row[0]: Group(row[0], row[1], row[2], row[3]) for row in found}

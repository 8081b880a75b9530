# SPDX-License-Identifier: Apache-2.0
"""What every request about one server begins with: finding it, and making sure that the caller may do this to it."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from oslo_log import log

from nova_lite import exception, policy, rpc
from nova_lite.api import validation
from nova_lite.api.request import Request
from nova_lite.api.services import Services
from nova_lite.api.views import servers as views
from nova_lite.db import host_status, instance_tags, instances, registry, zones
from nova_lite.db.instances import Caller, Instance

LOG = log.getLogger(__name__)

API = "os_compute_api:"


def caller(req: Request) -> Caller:
    """Return who asks, as operations note it. A locked server does not stop administrators."""
    context = req.nova
    return Caller(
        project_id=context.project_id or "",
        user_id=context.user_id or "",
        request_id=req.request_id,
        may_override_lock=bool(context.is_admin),
    )


def parse_id(server_id: str) -> str:
    """Return a server's id as rows have it.

    :raises InstanceNotFound: it is not even the form of an id; clients try names first.
    """
    if not validation.is_uuid(server_id):
        raise exception.InstanceNotFound(uuid=server_id[:64])
    return server_id.lower()


def find(services: Services, req: Request, server_id: str, action: str, include_deleted: bool = False) -> Instance:
    """Return the server, for a caller who may do the action to it.

    :param action: the policy's name, without its prefix.
    :raises InstanceNotFound: there is none, or it is another project's, whose servers a user knows nothing of.
    :raises Forbidden: the policy does not allow the action.
    """
    uuid = parse_id(server_id)
    row = services.db.read(lambda conn: instances.get(conn, uuid, include_deleted))
    check(req, row, action)
    return row


def check(req: Request, row: Instance, action: str) -> None:
    """Make sure that the caller may know of the server, and do the action to it.

    :raises InstanceNotFound: it is another project's.
    :raises Forbidden: the policy does not allow the action.
    """
    if not req.nova.is_admin and row.project_id != req.nova.project_id:
        raise exception.InstanceNotFound(uuid=row.uuid)
    policy.authorize(req.nova, API + action, {"project_id": row.project_id, "user_id": row.user_id})


def server_of(conn: sa.Connection, services: Services, row: Instance) -> str:
    """Return the RPC server that serves the server's host.

    :raises Conflict: it is on no host.
    :raises ServiceUnavailable: the compute service there is down.
    """
    if row.host is None:
        raise exception.Conflict(f"Instance {row.uuid} is not ready: it is on no host.")
    found = registry.compute_servers(conn, [row.host], services.conf.service_down_time)
    server, is_up = found.get(row.host, ("", False))
    if not is_up:
        raise exception.ServiceUnavailable(host=f"of server {row.uuid}")
    return server


def read_facts(conn: sa.Connection, services: Services, req: Request, rows: Sequence[Instance]) -> views.Facts:
    """Read what is shown of these servers beside their rows; a fixed number of statements for any number of them."""
    hosts = {row.host for row in rows if row.host}
    target = {"project_id": rows[0].project_id, "user_id": rows[0].user_id} if rows else None
    any_status = policy.allows(req.nova, API + "servers:show:host_status", target)
    unknown_only = not any_status and policy.allows(req.nova, API + "servers:show:host_status:unknown-only", target)
    statuses = None
    if req.version >= views.HOST_STATUS and (any_status or unknown_only):
        statuses = host_status.by_host(conn, hosts, services.conf.service_down_time)
    groups = instances.groups_of(conn, rows) if req.version >= views.SERVER_GROUPS and len(rows) == 1 else {}
    return views.Facts(
        default_zone=services.conf.api.default_availability_zone,
        tags=instance_tags.of(conn, [row.uuid for row in rows]) if req.version >= views.TAGS else {},
        zones=zones.by_host(conn, hosts),
        groups={group.id: group.uuid for group in groups.values()},
        host_statuses=statuses,
        unknown_status_only=unknown_only,
        extended=policy.allows(req.nova, API + "os-extended-server-attributes", target),
        extra_specs=policy.allows(req.nova, API + "servers:show:flavor-extra-specs", target),
        fault_details=bool(req.nova.is_admin),
    )


def hint(services: Services, req: Request, operations: Sequence[str]) -> None:
    """Tell the conductors that these operations wait. They are on the books already: a lost hint costs time alone."""
    try:
        services.conductor.run(req.nova, operations)
    except (rpc.Error, exception.BusUnavailable) as error:
        LOG.warning("hint lost operations=%s reason=%s; the sweep will find them", ",".join(operations), error)

# SPDX-License-Identifier: Apache-2.0
"""Actions that move a server: to another size, to another host, away from a dead one.

What is refused here is what the request says wrong and what the server's state does not allow. Whether a host has room,
and whether its group lets the server go there, the scheduler knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import falcon
import sqlalchemy as sa

from nova_lite import exception, policy
from nova_lite.api import server_creation, server_lookup
from nova_lite.api.microversion import Version, Versioned
from nova_lite.api.request import Request
from nova_lite.api.schemas import server_moves as schemas
from nova_lite.api.server_lookup import API
from nova_lite.api.services import Services
from nova_lite.api.validation import Schema, boolean
from nova_lite.db import compute_services, flavors, instances, moves, operations, registry
from nova_lite.db.instances import Instance
from nova_lite.objects import instance as states
from nova_lite.objects.flavor import Flavor

_NO_SHARED_STORAGE = Version(2, 14)
_MIGRATE_TO_HOST = Version(2, 56)
_EVACUATED_STOPPED = Version(2, 95)

_CAN_MOVE = (states.ACTIVE, states.STOPPED)
_CAN_MOVE_LIVE = (states.ACTIVE, states.PAUSED)
_CAN_EVACUATE = (states.ACTIVE, states.STOPPED, states.ERROR)


class ServerMoves:
    """The actions of /servers/{server_id}/action that move a server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.actions: dict[
            str, tuple[Schema | Versioned[Schema], Callable[[Request, falcon.Response, str, Any], None]]
        ] = {
            "resize": (schemas.RESIZE, self._resize),
            "confirmResize": (schemas.CONFIRM, self._confirm),
            "revertResize": (schemas.REVERT, self._revert),
            "migrate": (schemas.MIGRATE, self._migrate),
            "os-migrateLive": (schemas.LIVE_MIGRATE, self._migrate_live),
            "evacuate": (schemas.EVACUATE, self._evacuate),
        }

    def _resize(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "servers:resize")
        flavor = self._flavor(req, str(value["flavorRef"]))
        _check_size(req, row, flavor)
        self._begin(req, row, operations.RESIZE, _CAN_MOVE, flavor=flavor, disk_config=value.get("OS-DCF:diskConfig"))

    def _flavor(self, req: Request, flavorid: str) -> Flavor:
        project = None if req.nova.is_admin else req.nova.project_id
        try:
            found = self._services.db.read(lambda conn: flavors.get(conn, flavorid, project))
            if found.disabled:
                raise exception.FlavorNotFound(flavor=flavorid)
        except exception.FlavorNotFound as error:
            raise exception.BadRequest(str(error))
        return found

    def _confirm(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "servers:confirm_resize")
        self._end(req, row, operations.CONFIRM)
        resp.status = falcon.HTTP_204

    def _revert(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "servers:revert_resize")
        self._end(req, row, operations.REVERT)

    def _migrate(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-migrate-server:migrate")
        host = (value or {}).get("host") if req.version >= _MIGRATE_TO_HOST else None
        _check_may_choose(req, row, host, "os-migrate-server:migrate:host")
        self._begin(req, row, operations.MIGRATE, _CAN_MOVE, host=host)

    def _migrate_live(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-migrate-server:migrate_live")
        host, block = value["host"], value["block_migration"]
        _check_may_choose(req, row, host, "os-migrate-server:migrate_live:host")
        arguments: dict[str, Any] = {"block_migration": block if block == "auto" else boolean(block)}
        if "disk_over_commit" in value:
            arguments["disk_over_commit"] = boolean(value["disk_over_commit"])
        if _is_forced(value):
            arguments["force"] = True
        self._begin(req, row, operations.LIVE_MIGRATE, _CAN_MOVE_LIVE, host=host, arguments=arguments)

    def _evacuate(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-evacuate")
        shared = boolean(value["onSharedStorage"]) if "onSharedStorage" in value else None
        if shared and "adminPass" in value:
            raise exception.BadRequest("admin password can't be changed on existing disk")
        arguments: dict[str, Any] = {"force": True} if _is_forced(value) else {}
        if shared is not None:
            arguments["on_shared_storage"] = shared
        if req.version >= _EVACUATED_STOPPED:
            arguments["target_state"] = states.STOPPED
        self._begin_evacuation(req, row, value.get("host"), arguments)
        resp.status = falcon.HTTP_200
        if req.version < _NO_SHARED_STORAGE:
            resp.media = {"adminPass": None if shared else server_creation.password(value)}

    def _begin(
        self,
        req: Request,
        row: Instance,
        kind: str,
        vm_states: Collection[str],
        *,
        flavor: Flavor | None = None,
        host: str | None = None,
        disk_config: str | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> None:
        """Put the move on the books, if the compute service of the server's host is up to do it; then hint."""
        services, caller = self._services, server_lookup.caller(req)

        def unit(conn: sa.Connection) -> str:
            operation = moves.begin(
                conn,
                services.conf,
                row.uuid,
                kind=kind,
                caller=caller,
                vm_states=vm_states,
                flavor=flavor,
                host=host,
                arguments=arguments,
            )
            moving = instances.lock(conn, row.uuid)
            server_lookup.server_of(conn, services, moving)
            if host is not None:
                self._check_destination(conn, moving, host, exception.BadRequest)
            if disk_config is not None:
                instances.update(conn, row.uuid, disk_config=disk_config)
            return operation

        server_lookup.hint(services, req, [services.db.write(unit)])

    def _begin_evacuation(self, req: Request, row: Instance, host: str | None, arguments: dict[str, Any]) -> None:
        """Put the evacuation on the books, if the server's host is certain to be dead; then hint."""
        services, caller = self._services, server_lookup.caller(req)

        def unit(conn: sa.Connection) -> str:
            before = instances.get(conn, row.uuid)
            if before.host is not None:
                compute_services.lock_fenced(conn, services.conf.service_down_time, before.host)
            operation = moves.begin(
                conn,
                services.conf,
                row.uuid,
                kind=operations.EVACUATE,
                caller=caller,
                vm_states=_CAN_EVACUATE,
                task_states=None,
                host=host,
                arguments=arguments,
            )
            moving = instances.lock(conn, row.uuid)
            if moving.host != before.host:
                raise operations.Moved("the server came to another host meanwhile")
            if host is not None:
                self._check_destination(conn, moving, host, exception.NotFound)
            return operation

        server_lookup.hint(services, req, [services.db.write(unit)])

    def _check_destination(
        self, conn: sa.Connection, row: Instance, host: str, unknown: type[exception.NovaLiteError]
    ) -> None:
        """Refuse a host that there is not, and the one that the server is on."""
        if host == row.host:
            raise exception.BadRequest("The target host can't be the same one.")
        if not registry.compute_servers(conn, [host], self._services.conf.service_down_time):
            raise unknown(f"Compute host {host} could not be found.")

    def _end(self, req: Request, row: Instance, kind: str) -> None:
        """Put the end of a move on the books, then hint."""
        caller = server_lookup.caller(req)
        operation = self._services.db.write(lambda conn: moves.end(conn, row.uuid, kind=kind, caller=caller))
        server_lookup.hint(self._services, req, [operation])


def _check_may_choose(req: Request, row: Instance, host: str | None, action: str) -> None:
    if host is not None:
        policy.authorize(req.nova, API + action, {"project_id": row.project_id, "user_id": row.user_id})


def _is_forced(value: dict[str, Any]) -> bool:
    """Read force, which needs a host."""
    forced = boolean(value.get("force", False))
    if forced and not value.get("host"):
        raise exception.BadRequest("Can't force to a non-provided destination")
    return forced


def _check_size(req: Request, row: Instance, flavor: Flavor) -> None:
    """Refuse a size that is the server's own, and disks that would have to shrink.

    :raises BadRequest: saying which.
    """
    if flavor.flavorid == row.flavorid:
        raise exception.BadRequest("When resizing, instances must change flavor!")
    present = instances.flavor_of(row)
    why = "Server disk was unable to be resized because:"
    if flavor.root_gb == 0 and present.root_gb != 0:
        raise exception.BadRequest(f"{why} Resize to zero disk flavor is not allowed.")
    for what, wanted, has in (
        ("disk", flavor.root_gb, present.root_gb),
        ("ephemeral disk", flavor.ephemeral_gb, present.ephemeral_gb),
    ):
        if wanted < has:
            raise exception.BadRequest(
                f"{why} Flavor's {what} is too small: it has {wanted} GiB, the server's has {has} GiB, and disks "
                "cannot shrink."
            )
    image = instances.image_of(row)
    if image is not None:
        server_creation.check_sizes(req, flavor, image)

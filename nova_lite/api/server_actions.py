# SPDX-License-Identifier: Apache-2.0
"""Actions on a server: the body's only key names the action, and its value what the action is told."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import falcon
import sqlalchemy as sa

from nova_lite import exception, policy
from nova_lite.api import server_lookup, validation
from nova_lite.api.microversion import Version, Versioned
from nova_lite.api.remote_consoles import OldConsoles
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import server_actions as schemas
from nova_lite.api.server_deferred_delete import ServerDeferredDelete
from nova_lite.api.server_images import ServerImages
from nova_lite.api.server_lookup import API
from nova_lite.api.server_moves import ServerMoves
from nova_lite.api.server_rebuild import ServerRebuild
from nova_lite.api.server_rescue import ServerRescue
from nova_lite.api.server_shelving import ServerShelving
from nova_lite.api.services import Services
from nova_lite.api.validation import Schema
from nova_lite.db import instances, operations
from nova_lite.db.instances import Instance
from nova_lite.objects import instance as states

# Tasks that a hard reboot interrupts.
_REBOOTING = (
    None,
    states.REBOOTING,
    states.REBOOTING_HARD,
    states.PAUSING,
    states.UNPAUSING,
    states.SUSPENDING,
    states.RESUMING,
)
_CAN_REBOOT_HARD = (*instances.AT_REST, states.ERROR)
_CRASH_DUMP = Version(2, 17)
_CAN_CRASH = (states.ACTIVE, states.PAUSED, states.RESCUED, states.RESIZED, states.ERROR)
# What no terminal shows, and some clients cannot read.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class _Plain:
    """An action that says nothing but its name, and is put on the books as it is."""

    rule: str
    kind: str
    task_state: str
    vm_states: tuple[str, ...]


_PLAIN = {
    "os-start": _Plain("servers:start", operations.START, states.POWERING_ON, (states.STOPPED,)),
    "os-stop": _Plain("servers:stop", operations.STOP, states.POWERING_OFF, (states.ACTIVE, states.ERROR)),
    "pause": _Plain("os-pause-server:pause", operations.PAUSE, states.PAUSING, (states.ACTIVE,)),
    "unpause": _Plain("os-pause-server:unpause", operations.UNPAUSE, states.UNPAUSING, (states.PAUSED,)),
    "suspend": _Plain("os-suspend-server:suspend", operations.SUSPEND, states.SUSPENDING, (states.ACTIVE,)),
    "unrescue": _Plain("os-unrescue", operations.UNRESCUE, states.UNRESCUING, (states.RESCUED,)),
    "shelveOffload": _Plain(
        "os-shelve:shelve_offload", operations.SHELVE_OFFLOAD, states.SHELVING_OFFLOADING, (states.SHELVED,)
    ),
    "resume": _Plain("os-suspend-server:resume", operations.RESUME, states.RESUMING, (states.SUSPENDED,)),
}


class ServerAction:
    """/servers/{server_id}/action"""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._actions: dict[
            str, tuple[Schema | Versioned[Schema], Callable[[Request, falcon.Response, str, Any], None]]
        ] = {
            **{name: (schemas.bare(name), functools.partial(self._plain, plain)) for name, plain in _PLAIN.items()},
            "reboot": (schemas.REBOOT, self._reboot),
            "lock": (schemas.LOCK, self._lock),
            "unlock": (schemas.UNLOCK, self._unlock),
            "changePassword": (schemas.CHANGE_PASSWORD, self._change_password),
            "injectNetworkInfo": (schemas.bare("injectNetworkInfo"), self._inject_network_info),
            "resetNetwork": (schemas.bare("resetNetwork"), self._reset_network),
            "trigger_crash_dump": (schemas.TRIGGER_CRASH_DUMP, self._trigger_crash_dump),
            "os-getConsoleOutput": (schemas.CONSOLE_OUTPUT, self._console_output),
            "os-resetState": (schemas.RESET_STATE, self._reset_state),
            **OldConsoles(services).actions,
            **ServerDeferredDelete(services).actions,
            **ServerMoves(services).actions,
            **ServerRebuild(services).actions,
            **ServerImages(services).actions,
            **ServerRescue(services).actions,
            **ServerShelving(services).actions,
        }

    @property
    def schemas(self) -> dict[str, Schema | Versioned[Schema]]:
        """What the body of each action may look like."""
        return {name: schema for name, (schema, _do) in self._actions.items()}

    @takes(body={})
    def on_post(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Do the action that the body names."""
        body = req.json_value()
        if not isinstance(body, dict) or not body:
            raise exception.BadRequest("Malformed request body: it must be a JSON object that names one action.")
        name = next(iter(body))
        if name not in self._actions:
            raise exception.BadRequest(f"There is no such action: {name[:64]}")
        schema, do = self._actions[name]
        validation.validate(body, schema, req.version)
        resp.status = falcon.HTTP_202
        do(req, resp, server_id, body[name])

    def _plain(self, plain: _Plain, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, plain.rule)
        self._begin(req, row, plain.kind, plain.task_state, plain.vm_states)

    def _reboot(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "servers:reboot")
        kind = value["type"].upper()
        if kind == "SOFT":
            self._begin(
                req, row, operations.REBOOT, states.REBOOTING, (states.ACTIVE,), arguments={"reboot_type": kind}
            )
        else:
            self._begin(
                req,
                row,
                operations.REBOOT,
                states.REBOOTING_HARD,
                _CAN_REBOOT_HARD,
                task_states=_REBOOTING,
                arguments={"reboot_type": kind},
            )

    def _begin(
        self,
        req: Request,
        row: Instance,
        kind: str,
        task_state: str,
        vm_states: Collection[str],
        task_states: Collection[str | None] = (None,),
        arguments: dict[str, Any] | None = None,
    ) -> None:
        """Put the action on the books, if the host's compute service is up to do it; then hint."""
        caller = server_lookup.caller(req)

        def unit(conn: sa.Connection) -> str:
            operation = instances.begin_action(
                conn,
                row.uuid,
                kind=kind,
                task_state=task_state,
                caller=caller,
                vm_states=vm_states,
                task_states=task_states,
                arguments=arguments,
            )
            server_lookup.server_of(conn, self._services, row)
            return operation

        operation = self._services.db.write(unit)
        server_lookup.hint(self._services, req, [operation])

    def _lock(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-lock-server:lock")
        caller = server_lookup.caller(req)
        owner = row.project_id == req.nova.project_id
        if row.locked_by and owner:
            return
        reason = value.get("locked_reason") if isinstance(value, dict) else None
        locked_by = "owner" if owner else "admin"
        self._services.db.write(lambda conn: instances.set_lock(conn, row.uuid, caller, locked_by, reason))

    def _unlock(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-lock-server:unlock")
        caller = server_lookup.caller(req)
        mine = "owner" if row.project_id == req.nova.project_id else "admin"
        if row.locked_by not in (None, mine):
            target = {"project_id": row.project_id, "user_id": row.user_id}
            policy.authorize(req.nova, API + "os-lock-server:unlock:unlock_override", target)
        self._services.db.write(lambda conn: instances.set_lock(conn, row.uuid, caller, None))

    def _console_output(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-console-output")
        server = self._services.db.read(lambda conn: server_lookup.server_of(conn, self._services, row))
        length = value.get("length")
        lines = None if length is None or int(length) < 0 else int(length)
        text = self._services.compute.console_output(req.nova, server, instances.to_object(row), lines)
        resp.status = falcon.HTTP_200
        resp.media = {"output": _CONTROLS.sub("", text)}

    def _change_password(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-admin-password")
        instances.check_state(row, "changePassword", (states.ACTIVE,))
        raise exception.Conflict("QEMU guest agent is not enabled: set the password inside the server.")

    def _inject_network_info(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        """Do what there is to do: nothing, for what a guest reads of its network is written when it is built."""
        row = server_lookup.find(self._services, req, server_id, "os-admin-actions:inject_network_info")
        instances.check_lock(row, server_lookup.caller(req))
        self._services.db.read(lambda conn: server_lookup.server_of(conn, self._services, row))

    def _reset_network(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        """Say what Nova says since it has no hypervisor any more that could."""
        server_lookup.find(self._services, req, server_id, "os-admin-actions:reset_network")
        raise exception.Gone("No hypervisor resets the network of its servers. Reboot the server instead.")

    def _trigger_crash_dump(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        if req.version < _CRASH_DUMP:
            raise exception.BadRequest("There is no such action: trigger_crash_dump")
        row = server_lookup.find(self._services, req, server_id, "servers:trigger_crash_dump")
        caller = server_lookup.caller(req)
        instances.check_lock(row, caller)
        instances.check_state(row, "trigger_crash_dump", _CAN_CRASH)
        raise exception.Conflict(f"Instance {row.uuid} cannot be made to crash: this cloud does not do that.")

    def _reset_state(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-admin-actions:reset_state")
        self._services.db.write(lambda conn: instances.reset_state(conn, row.uuid, value["state"]))


ROUTES = [("/servers/{server_id}/action", ServerAction)]

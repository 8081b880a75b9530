# SPDX-License-Identifier: Apache-2.0
"""/os-hosts: hosts as they were shown before hypervisors and services; gone from 2.43 on."""

from __future__ import annotations

from typing import Any

import falcon

from nova_lite import exception, policy
from nova_lite.api.request import Request, takes, until
from nova_lite.api.services import Services
from nova_lite.api.validation import Schema, multi, obj, query_of
from nova_lite.db import compute_services, hypervisors
from nova_lite.db.compute_services import Change, Service
from nova_lite.db.hypervisors import Hypervisor
from nova_lite.db.registry import COMPUTE

_API = "os_compute_api:os-hosts:"
_LIST = query_of({"zone": multi({"type": "string"}), "service": multi({"type": "string"})})
# In letters of any case, as Nova takes them.
_SWITCH: Schema = {"type": "string", "pattern": "^(?i:enable|disable)$"}
_UPDATE = obj({"status": _SWITCH, "maintenance_mode": _SWITCH}, minProperties=1)


class _Resource:
    def __init__(self, services: Services) -> None:
        self._db = services.db
        self._down_time: float = services.conf.service_down_time
        self._default_zone: str = services.conf.api.default_availability_zone

    def _service(self, host: str) -> Service:
        found = self._db.read(lambda conn: compute_services.search(conn, self._down_time, host, COMPUTE))
        if not found:
            raise _not_found(host)
        return found[0]


class Hosts(_Resource):
    """/os-hosts"""

    @until("2.42")
    @takes(query=_LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "list")
        query = req.query()
        found = self._db.read(lambda conn: compute_services.search(conn, self._down_time))
        shown = [
            {
                "host_name": service.host,
                "service": service.binary.removeprefix("nova-"),
                "zone": service.zone or self._default_zone,
            }
            for service in found
        ]
        for name in ("zone", "service"):
            # An empty one asks for all, as none does.
            if query.get(name, [""])[0]:
                shown = [host for host in shown if host[name] == query[name][0]]
        resp.media = {"hosts": shown}


class Host(_Resource):
    """/os-hosts/{host}"""

    @until("2.42")
    def on_get(self, req: Request, resp: falcon.Response, host: str) -> None:
        policy.authorize(req.nova, _API + "show")
        found = self._db.read(lambda conn: hypervisors.search(conn, self._down_time))
        nodes = [node for node in found if node.host == host]
        if not nodes:
            raise _not_found(host)
        resp.media = {"host": _resources(host, nodes)}

    @until("2.42")
    @takes(body=_UPDATE)
    def on_put(self, req: Request, resp: falcon.Response, host: str) -> None:
        body = req.json_body()
        policy.authorize(req.nova, _API + "update")
        service = self._service(host)
        if "maintenance_mode" in body:
            raise exception.NotImplementedHere(
                "This cloud has no maintenance mode of hosts. Disable the host's service, and migrate its servers."
            )
        status = f"{body['status'].lower()}d"
        change = Change(disabled=status == "disabled")
        self._db.write(lambda conn: compute_services.update(conn, service.id, change))
        resp.media = {"host": host, "status": status}


class _PowerAction(_Resource):
    """/os-hosts/{host}/startup and the like: compute hosts have no hand on their own power."""

    action: str

    @until("2.42")
    def on_get(self, req: Request, resp: falcon.Response, host: str) -> None:
        policy.authorize(req.nova, _API + self.action)
        self._service(host)
        raise exception.NotImplementedHere(what=f"the {self.action} of compute hosts: use what manages their power")


class Startup(_PowerAction):
    action = "start"


class Shutdown(_PowerAction):
    action = "shutdown"


class Reboot(_PowerAction):
    action = "reboot"


def _not_found(host: str) -> exception.NotFound:
    return exception.NotFound(f"Compute host {host} could not be found.")


def _resources(host: str, nodes: list[Hypervisor]) -> list[dict[str, Any]]:
    totals = {
        "(total)": ("total_vcpus", "total_memory_mb", "total_disk_gb"),
        "(used_now)": ("used_vcpus", "used_memory_mb", "used_disk_gb"),
        "(used_max)": ("used_vcpus", "used_memory_mb", "used_disk_gb"),
    }
    return [
        {
            "resource": {
                "host": host,
                "project": project,
                "cpu": sum(getattr(node, cpu) for node in nodes),
                "memory_mb": sum(getattr(node, memory) for node in nodes),
                "disk_gb": sum(getattr(node, disk) for node in nodes),
            }
        }
        for project, (cpu, memory, disk) in totals.items()
    ]


ROUTES: list[tuple[str, type]] = [
    ("/os-hosts", Hosts),
    ("/os-hosts/{host}", Host),
    ("/os-hosts/{host}/startup", Startup),
    ("/os-hosts/{host}/shutdown", Shutdown),
    ("/os-hosts/{host}/reboot", Reboot),
]

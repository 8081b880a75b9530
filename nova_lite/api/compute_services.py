# SPDX-License-Identifier: Apache-2.0
"""/os-services: which processes there are, whether they are alive, and taking compute hosts in and out of service."""

from __future__ import annotations

from typing import Any

import falcon
from oslo_log import log

from nova_lite import exception, policy
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import compute_services as schemas
from nova_lite.api.services import Services
from nova_lite.api.validation import boolean, is_uuid
from nova_lite.api.views import compute_services as views
from nova_lite.db import compute_services
from nova_lite.db.compute_services import Change, Service
from nova_lite.db.registry import COMPUTE

LOG = log.getLogger(__name__)

_API = "os_compute_api:os-services:"
_FORCED_DOWN = Version(2, 11)
_UUIDS = Version(2, 53)


class _Resource:
    def __init__(self, services: Services) -> None:
        self._db = services.db
        self._down_time: float = services.conf.service_down_time
        self._default_zone: str = services.conf.api.default_availability_zone

    def _get(self, which: int | str) -> Service:
        return self._db.read(lambda conn: compute_services.get(conn, self._down_time, which))

    def _change(self, service: Service, change: Change) -> None:
        self._db.write(lambda conn: compute_services.update(conn, service.id, change))
        LOG.info("service changed host=%s binary=%s change=%s", service.host, service.binary, change)


class ComputeServices(_Resource):
    """/os-services"""

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "list")
        query = req.query()
        host, binary = query.get("host", [None])[0], query.get("binary", [None])[0]
        found = self._db.read(lambda conn: compute_services.search(conn, self._down_time, host or None, binary or None))
        resp.media = {"services": [views.detail(req, service, self._default_zone) for service in found]}


class ServiceResource(_Resource):
    """/os-services/{service_id}: a service from 2.53 on; before, what is to be done to the one that the body names."""

    @takes(body=schemas.UPDATE)
    def on_put(self, req: Request, resp: falcon.Response, service_id: str) -> None:
        policy.authorize(req.nova, _API + "update")
        if req.version >= _UUIDS:
            self._update(req, resp, service_id)
        else:
            self._act(req, resp, service_id)

    def _update(self, req: Request, resp: falcon.Response, service_id: str) -> None:
        service = self._get(_identify(req, service_id))
        if service.binary != COMPUTE:
            raise exception.BadRequest(
                f"Updating a {service.binary} service is not supported. Only nova-compute services can be updated."
            )
        body = req.json_body()
        status, reason = body.get("status"), body.get("disabled_reason")
        if reason is not None and status != "disabled":
            raise exception.BadRequest("Specifying disabled_reason requires status to be disabled.")
        down = boolean(body["forced_down"]) if "forced_down" in body else None
        self._change(service, Change(None if status is None else status == "disabled", reason, down))
        resp.media = {"service": views.detail(req, self._get(service.uuid), self._default_zone)}

    def _act(self, req: Request, resp: falcon.Response, action: str) -> None:
        body = req.json_body()
        change, shown = _legacy(req, action, body)
        service = self._db.read(
            lambda conn: compute_services.named(conn, self._down_time, body["host"], body["binary"])
        )
        self._change(service, change)
        resp.media = {"service": {"host": service.host, "binary": service.binary, **shown}}

    def on_delete(self, req: Request, resp: falcon.Response, service_id: str) -> None:
        policy.authorize(req.nova, _API + "delete")
        service = self._get(_identify(req, service_id))
        self._db.write(lambda conn: compute_services.delete(conn, service.id))
        LOG.info("service deleted host=%s binary=%s", service.host, service.binary)
        resp.status = falcon.HTTP_204


def _legacy(req: Request, action: str, body: dict[str, Any]) -> tuple[Change, dict[str, Any]]:
    """Return what an action of old changes, and what its answer says."""
    reason = body.get("disabled_reason")
    if action == "enable":
        return Change(disabled=False), {"status": "enabled"}
    if action == "disable":
        return Change(disabled=True), {"status": "disabled"}
    if action == "disable-log-reason":
        if reason is None:
            raise exception.BadRequest("Missing disabled reason field")
        return Change(disabled=True, disabled_reason=reason), {"status": "disabled", "disabled_reason": reason}
    if action == "force-down" and req.version >= _FORCED_DOWN:
        if "forced_down" not in body:
            raise exception.BadRequest("Missing forced_down field")
        down = boolean(body["forced_down"])
        return Change(forced_down=down), {"forced_down": down}
    raise exception.NotFound("Unknown action")


def _identify(req: Request, service_id: str) -> int | str:
    """Read the id in the form that the version has: a uuid from 2.53 on, a number before."""
    if req.version >= _UUIDS:
        if not is_uuid(service_id):
            raise exception.BadRequest(f"Invalid uuid {service_id[:64]}")
        return service_id.lower()
    if not service_id.isascii() or not service_id.isdigit() or len(service_id) > 18:
        raise exception.BadRequest(f"The service id {service_id[:64]} is not an integer.")
    return int(service_id)


ROUTES: list[tuple[str, type]] = [
    ("/os-services", ComputeServices),
    ("/os-services/{service_id}", ServiceResource),
]

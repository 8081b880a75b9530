# SPDX-License-Identifier: Apache-2.0
"""What other services tell of servers: each event is answered for itself, and only those that concern us do anything.

There is nothing here that waits for a network, a volume or an accelerator, so that news of these are taken note of in
the log. That a server's power may have changed makes its compute look, as a hypervisor's own event does.
"""

from __future__ import annotations

from typing import Any

import falcon
from oslo_log import log

from nova_lite import exception, policy, rpc
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import server_external_events as schemas
from nova_lite.api.server_lookup import API
from nova_lite.api.services import Services
from nova_lite.db import instances, registry
from nova_lite.db.instances import Instance

LOG = log.getLogger(__name__)

_ACCEPTED, _MALFORMED, _UNKNOWN_SERVER, _ON_NO_HOST = 200, 400, 404, 422
_POWER_UPDATE = "power-update"
_POWER_TAGS = ("POWER_ON", "POWER_OFF")


class ServerExternalEvents:
    """/os-server-external-events"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @takes(body=schemas.CREATE)
    def on_post(self, req: Request, resp: falcon.Response) -> None:
        """Take note of events.

        :raises NotFound: none of them is of a server that is on a host.
        """
        policy.authorize(req.nova, API + "os-server-external-events:create")
        given = req.json_body()["events"]
        uuids = sorted({event["server_uuid"].lower() for event in given})
        rows = {row.uuid: row for row in self._services.db.read(lambda conn: instances.get_many(conn, uuids))}
        events = [_judged(event, rows.get(event["server_uuid"].lower())) for event in given]
        accepted = [event for event in events if event["code"] == _ACCEPTED]
        if not accepted:
            raise exception.NotFound("No instances found for any event")
        self._act(req, accepted, rows)
        resp.status = falcon.HTTP_200 if len(accepted) == len(events) else falcon.HTTP_207
        resp.media = {"events": events}

    def _act(self, req: Request, accepted: list[dict[str, Any]], rows: dict[str, Instance]) -> None:
        for event in accepted:
            LOG.info("external event name=%s instance=%s tag=%s", event["name"], event["server_uuid"], event.get("tag"))
        changed = [rows[event["server_uuid"].lower()] for event in accepted if event["name"] == _POWER_UPDATE]
        hosts = sorted({row.host for row in changed if row.host})
        if not hosts:
            return
        down_time = self._services.conf.service_down_time
        servers = self._services.db.read(lambda conn: registry.compute_servers(conn, hosts, down_time))
        for row in changed:
            server, is_up = servers.get(row.host or "", ("", False))
            if is_up:
                self._look(req, server, row.uuid)

    def _look(self, req: Request, server: str, uuid: str) -> None:
        """Have a compute look; should it not hear, its next report tells the same."""
        try:
            self._services.compute.look(req.nova, server, uuid)
        except (rpc.Error, exception.BusUnavailable) as error:
            LOG.warning("event lost instance=%s reason=%s", uuid, error)


def _judged(event: dict[str, Any], row: Instance | None) -> dict[str, Any]:
    """Answer one event: as it came, with what became of it."""
    shown = {"status": "completed", **event}
    if row is None:
        return {**shown, "status": "failed", "code": _UNKNOWN_SERVER}
    if row.host is None:
        return {**shown, "status": "failed", "code": _ON_NO_HOST}
    if event["name"] == _POWER_UPDATE and event.get("tag") not in _POWER_TAGS:
        return {**shown, "status": "failed", "code": _MALFORMED}
    return {**shown, "code": _ACCEPTED}


ROUTES = [("/os-server-external-events", ServerExternalEvents)]

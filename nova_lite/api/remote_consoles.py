# SPDX-License-Identifier: Apache-2.0
"""Consoles of servers: URLs that open a server's screen in a browser, and what their tokens stand for.

The screen itself is shown by the proxy (console/proxy.py), which asks the same books whether a token holds.
"""

from __future__ import annotations

import functools
import secrets
from typing import Any
from urllib.parse import quote, urlencode

import falcon

from nova_lite import exception, policy
from nova_lite.api import server_lookup
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request, since, takes
from nova_lite.api.schemas import consoles as schemas
from nova_lite.api.server_lookup import API
from nova_lite.api.services import Services
from nova_lite.db import console_tokens, instances
from nova_lite.db.instances import Instance
from nova_lite.objects import instance as states
from nova_lite.objects.diagnostics import Screen

#: The only kind that there is, of the kinds that Nova knows.
NOVNC = "novnc"
_EVERY_TYPE = Version(2, 31)
_TLS_PORT = Version(2, 99)
_POWERED = (states.RUNNING, states.POWER_PAUSED)


def open_console(services: Services, req: Request, server_id: str, console_type: str) -> str:
    """Return the URL that opens a console of the server, once.

    :raises BadRequest: there are no consoles of this type here.
    :raises Conflict: the server is on no host, or has no power.
    """
    row = server_lookup.find(services, req, server_id, "os-remote-consoles")
    if console_type != NOVNC or not services.conf.novnc.enabled:
        raise _unavailable(console_type)
    server = services.db.read(lambda conn: server_lookup.server_of(conn, services, row))
    screen = _screen(services, req, row, server)
    token, ttl = secrets.token_hex(32), services.conf.consoles.token_ttl
    host = row.host or ""
    services.db.write(lambda conn: console_tokens.create(conn, token, row.uuid, NOVNC, host, screen, ttl))
    query = urlencode({"path": f"?token={token}"}, quote_via=quote)
    return f"{services.conf.novnc.base_url}?{query}"


def _screen(services: Services, req: Request, row: Instance, server: str) -> Screen:
    try:
        screen = services.compute.screen(req.nova, server, instances.to_object(row))
    except exception.DomainNotFound:
        raise _not_ready(row)
    if screen is None:
        raise _unavailable(NOVNC) if row.power_state in _POWERED else _not_ready(row)
    return screen


def _not_ready(row: Instance) -> exception.Conflict:
    return exception.Conflict(f"Instance {row.uuid} is not ready: only a server that runs has a screen.")


def _unavailable(console_type: str) -> exception.BadRequest:
    return exception.BadRequest(f"Unavailable console type {console_type}.")


class RemoteConsoles:
    """/servers/{server_id}/remote-consoles"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @since("2.6")
    @takes(body=schemas.REMOTE_CONSOLE)
    def on_post(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """Open a console."""
        wanted = req.json_body()["remote_console"]
        if wanted["protocol"] != "vnc":
            server_lookup.find(self._services, req, server_id, "os-remote-consoles")
            raise _unavailable(wanted["type"])
        url = open_console(self._services, req, server_id, wanted["type"])
        resp.media = {"remote_console": {**wanted, "url": url}}


class OldConsoles:
    """The actions that opened consoles up to 2.5, one for each protocol."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.actions = {
            name: (schemas.old_action(name), functools.partial(self._open, name)) for name in schemas.OLD_ACTIONS
        }

    def _open(self, name: str, req: Request, resp: falcon.Response, server_id: str, value: dict[str, Any]) -> None:
        url = open_console(self._services, req, server_id, value["type"])
        resp.status = falcon.HTTP_200
        resp.media = {"console": {"type": value["type"], "url": url}}


class ConsoleAuthToken:
    """/os-console-auth-tokens/{token}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    def on_get(self, req: Request, resp: falcon.Response, token: str) -> None:
        """Show what a token opens, as long as it holds; for proxies other than ours."""
        policy.authorize(req.nova, API + "os-console-auth-tokens")
        reuse = self._services.conf.consoles.reuse_tokens
        console = self._services.db.read(lambda conn: console_tokens.find(conn, token, reuse))
        if console is None:
            raise exception.NotFound("Token not found")
        if req.version < _EVERY_TYPE:
            # Before, the only ones that could be asked about were those of a type that there is none of here.
            raise exception.Unauthorized("The requested console type details are not accessible")
        shown = {
            "instance_uuid": console.instance_uuid,
            "host": console.host,
            "port": console.port,
            "internal_access_path": None,
        }
        resp.media = {"console": {**shown, "tls_port": None} if req.version >= _TLS_PORT else shown}


ROUTES = [
    ("/servers/{server_id}/remote-consoles", RemoteConsoles),
    ("/os-console-auth-tokens/{token}", ConsoleAuthToken),
]

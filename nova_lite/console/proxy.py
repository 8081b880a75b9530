# SPDX-License-Identifier: Apache-2.0
"""The proxy between browsers and screens: WebSockets to VNC, for whoever has a token, and noVNC's pages beside that.

WebSockets and the passing of frames are websockify's, whose own servers fork a process for each connection, or keep the
target of a connection where the next one overwrites it. Here each connection has a thread, and its target to itself.
"""

from __future__ import annotations

import socket
import ssl
import threading
from http.cookies import SimpleCookie
from http.server import HTTPServer
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs, urlsplit

from oslo_config import cfg
from oslo_log import log
from websockify.websocketproxy import ProxyRequestHandler

from nova_lite.console.gate import Gate, Refused
from nova_lite.objects.diagnostics import Screen

LOG = log.getLogger(__name__)

# Seconds that a client may take for its request, and a screen to be reached.
_PATIENCE = 20.0


class Handler(ProxyRequestHandler):
    """One connection: a page of noVNC, or a WebSocket that becomes a screen."""

    server: Proxy
    server_version = "nova-lite"
    sys_version = ""
    timeout = _PATIENCE

    def handle_upgrade(self) -> None:
        """Let the client in before the WebSocket is made, so that it reads why not."""
        refusal = self._origin_refused()
        if refusal is None:
            try:
                self._screen = self.server.gate.admit(_token(self.path, self.headers.get("Cookie", "")))
                self._target = socket.create_connection((self._screen.host, self._screen.port), _PATIENCE)
            except Refused as error:
                refusal = str(error)
            except OSError as error:
                LOG.warning("screen not reached host=%s port=%d reason=%s", *_place(self._screen), error)
                self.send_error(502, "The server's screen cannot be reached. Ask the operator.")
                return
        if refusal is not None:
            self.send_error(403, refusal)
            return
        try:
            super().handle_upgrade()
        finally:
            self._target.close()

    def validate_connection(self) -> None:
        """Do nothing: ``handle_upgrade`` has done it."""

    def new_websocket_client(self) -> None:
        """Pass everything on between the browser and the screen until either ends."""
        target = self._target
        target.settimeout(None)
        self.connection.settimeout(None)
        target.setsockopt(socket.SOL_TCP, socket.TCP_NODELAY, 1)
        self.do_proxy(target)

    def translate_path(self, path: str) -> str:
        """Find pages below the directory of noVNC, whatever this process' own is."""
        self.directory = str(self.server.web)
        return super().translate_path(path)

    def do_GET(self) -> None:  # noqa: N802 - the name is the standard library's
        """Serve a page, or upgrade."""
        if self.server.web is None and self.headers.get("Upgrade", "").lower() != "websocket":
            self.send_error(404, "noVNC is not installed here: use a client that speaks VNC over WebSockets.")
            return
        super().do_GET()

    def _origin_refused(self) -> str | None:
        """Refuse pages of others, which could otherwise use what a user's browser knows."""
        origin = self.headers.get("Origin")
        if origin is None:
            return None
        allowed = {self.headers.get("Host", "").lower(), *self.server.allowed_origins}
        return None if urlsplit(origin).netloc.lower() in allowed else "Pages of this origin may open no console here."

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the standard library's
        """Log without the query, in which tokens are."""
        LOG.debug("console proxy: %s", (format % args).split("?", 1)[0])


def _token(path: str, cookies: str) -> str:
    """Read the token from the query, or from the cookie in which older pages of noVNC have it.

    :raises Refused: there is none.
    """
    found = parse_qs(urlsplit(path).query).get("token")
    if found:
        return found[0]
    cookie = SimpleCookie(cookies).get("token")
    if cookie is None or not cookie.value:
        raise Refused("A token is needed: open the URL that the API gives.")
    return cookie.value


def _place(screen: Screen) -> tuple[str, int]:
    return screen.host, screen.port


class Proxy(ThreadingMixIn, HTTPServer):
    """The server: a thread for each connection, as many as [novnc] max_connections."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    # What websockify's handlers ask of their server.
    only_upgrade = False
    file_only = True
    web_auth = False
    auth_plugin = None
    heartbeat = None
    unix_listen = None

    def __init__(self, conf: cfg.ConfigOpts, gate: Gate) -> None:
        """Open the port.

        :raises OSError: it cannot be opened, or the certificate not be read.
        """
        self.gate = gate
        options = conf.novnc
        self.allowed_origins = {origin.lower() for origin in options.allowed_origins}
        self.web = Path(options.web) if options.web and Path(options.web).is_dir() else None
        self._room = threading.BoundedSemaphore(options.max_connections)
        self._tls: ssl.SSLContext | None = None
        if options.cert:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(options.cert, options.key or None)
        self.address_family = socket.AF_INET6 if ":" in options.listen else socket.AF_INET
        super().__init__((options.listen, options.port), Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Take a connection; what TLS asks of the client is done in the connection's own thread."""
        connection, address = super().get_request()
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a thread, or close it if there are enough."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            LOG.warning("console proxy is full; [novnc] max_connections are open")
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what a connection died of; clients that vanish are everyday."""
        LOG.debug("console connection ended client=%s", client_address, exc_info=True)

# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of an api process: cheroot's thread pool around the application, with a quiet start and end."""

from __future__ import annotations

import threading
from typing import Any

from cheroot import server as http
from cheroot import wsgi
from oslo_config import cfg
from oslo_log import log

from nova_lite.api.request_body import Body, BrokenBody, ChunkedBody

LOG = log.getLogger(__name__)

# Seconds that a connection may say nothing.
_IDLE = 60
_HEADER_BYTES = 64 * 1024
# Bytes of an unread body that are read for the sake of keeping the connection.
_DRAINED = 1 << 20
# Connections that are kept between requests; they cost no thread.
_KEPT_CONNECTIONS = 512


class _Headers(http.HeaderReader):
    """cheroot's reader of headers, without what lets one request look like another to a proxy before the api.

    WSGI makes X_Auth_Token of X-Auth-Token, so headers with an underscore are dropped. Two lengths, or a length and
    chunks, are refused: whoever believes the other one sees another request behind this one.
    """

    def __call__(self, rfile: Any, hdict: dict[bytes, bytes] | None = None) -> dict[bytes, bytes]:
        headers: dict[bytes, bytes] = super().__call__(rfile, _Once() if hdict is None else _Once.over(hdict))
        if b"Content-Length" in headers and b"Transfer-Encoding" in headers:
            raise ValueError("Content-Length and Transfer-Encoding exclude each other.")
        if not headers.get(b"Content-Length", b"0").isdigit():
            raise ValueError("Malformed Content-Length Header.")
        if hdict is not None:
            hdict.update(headers)
        return headers

    def _allow_header(self, key_name: bytes) -> bool:
        return b"_" not in key_name


class _Once(dict[bytes, bytes]):
    """Headers of which some may be there only once."""

    @classmethod
    def over(cls, others: dict[bytes, bytes]) -> _Once:
        made = cls()
        made.update(others)
        return made

    def __setitem__(self, name: bytes, value: bytes) -> None:
        if name in (b"Content-Length", b"Host", b"X-Auth-Token") and self.get(name, value) != value:
            raise ValueError(f"{name.decode()} is there twice, and differs.")
        super().__setitem__(name, value)


class _Request(http.HTTPRequest):
    header_reader = _Headers()


class _Connection(http.HTTPConnection):
    RequestHandlerClass = _Request


class _Gateway(wsgi.Gateway_10):
    """cheroot's way from a request to the application, with our own streams of bodies (request_body.py).

    cheroot would read the rest of a body before it answers, all of it into memory, whoever sent it. Here the
    connection is closed after the answer instead.
    """

    def __init__(self, req: Any) -> None:
        source = req.conn.rfile
        req.rfile = ChunkedBody(source) if req.chunked_read else Body(source, req.rfile.remaining)
        super().__init__(req)

    def start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        if self.req.chunked_read or not self._drain():
            self.req.close_connection = True
        return super().start_response(status, headers, exc_info)

    def _drain(self) -> bool:
        """Read what the application left of the body if it is little; return whether nothing is left."""
        body: Body = self.req.rfile
        try:
            if body.remaining <= _DRAINED:
                body.read()
        except BrokenBody:
            return False
        return body.remaining == 0


class _Server(wsgi.Server):
    """cheroot's server with its own errors (broken connections, requests that are not HTTP) in our log."""

    ConnectionClass = _Connection
    keep_alive_conn_limit = _KEPT_CONNECTIONS

    def error_log(self, msg: str = "", level: int = 20, traceback: bool = False) -> None:
        LOG.log(level, "http server: %s", msg.strip(), exc_info=traceback)

    def process_conn(self, conn: Any) -> None:
        """Give a connection to a thread; a new one only once it has said something, for threads are few."""
        if conn.last_used is None:
            self.put_conn(conn)
        else:
            super().process_conn(conn)


class Server:
    """Serves one WSGI app on [api] listen and port.

    ``start`` returns once the port is open; ``stop`` waits for requests that are being answered, as long as
    graceful_shutdown_timeout allows. Both may be called from any thread, and twice.
    """

    def __init__(self, conf: cfg.ConfigOpts, app: Any, port: int | None = None) -> None:
        """:param port: instead of the configured one; 0 for any that is free."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._server = _Server(
            (conf.api.listen, conf.api.port if port is None else port),
            app,
            numthreads=conf.api.threads,
            server_name="nova-lite",
            request_queue_size=1024,
            timeout=_IDLE,
            shutdown_timeout=conf.graceful_shutdown_timeout,
            # Several workers listen on one port, and the kernel deals connections out to them.
            reuse_port=conf.api.workers > 1,
        )
        self._server.max_request_header_size = _HEADER_BYTES
        self._server.gateway = _Gateway

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens, once it has been started."""
        host, port = self._server.bind_addr[:2]
        return str(host), int(port)

    def start(self) -> None:
        """Open the port and serve from a thread.

        :raises OSError: the port cannot be opened.
        """
        with self._lock:
            if self._thread is not None:
                return
            self._server.prepare()
            self._thread = threading.Thread(target=self._serve, name="api", daemon=True)
            self._thread.start()
        LOG.info("api listens host=%s port=%d", *self.address)

    def _serve(self) -> None:
        self._server.serve()

    def stop(self) -> None:
        """Stop accepting, finish what is being answered, and close the port."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._server.stop()
            thread.join()

    def wait(self) -> None:
        """Wait until it is stopped."""
        thread = self._thread
        if thread is not None:
            thread.join()

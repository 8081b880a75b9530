# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of an api process: cheroot's thread pool around the application, with a quiet start and end."""

from __future__ import annotations

import threading
from typing import Any

from cheroot import wsgi
from oslo_config import cfg
from oslo_log import log

LOG = log.getLogger(__name__)

# Seconds that a connection may say nothing.
_IDLE = 60
_HEADER_BYTES = 64 * 1024
# Bytes of an unread body that are read for the sake of keeping the connection.
_DRAINED = 1 << 20


class _Gateway(wsgi.Gateway_10):
    """cheroot's way from a request to the application, which does not swallow what the application refused to read.

    cheroot would read the rest of a body before it answers, all of it into memory, whoever sent it. Here the
    connection is closed after the answer instead; also after a body in chunks, whose end may not have been reached.
    """

    def start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        if self.req.chunked_read or getattr(self.req.rfile, "remaining", 0) > _DRAINED:
            self.req.close_connection = True
        return super().start_response(status, headers, exc_info)


class _Quiet(wsgi.Server):
    """cheroot's server with its own errors (broken connections, requests that are not HTTP) in our log."""

    def error_log(self, msg: str = "", level: int = 20, traceback: bool = False) -> None:
        LOG.log(level, "http server: %s", msg.strip(), exc_info=traceback)


class Server:
    """Serves one WSGI app on [api] listen and port.

    ``start`` returns once the port is open; ``stop`` waits for requests that are being answered, as long as
    graceful_shutdown_timeout allows. Both may be called from any thread, and twice.
    """

    def __init__(self, conf: cfg.ConfigOpts, app: Any, port: int | None = None) -> None:
        """:param port: instead of the configured one; 0 for any that is free."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._server = _Quiet(
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

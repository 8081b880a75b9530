# SPDX-License-Identifier: Apache-2.0
"""A thin client of the Compute API: what it costs is measured together with the cloud on the same machine."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any


class Api:
    """The Compute API through a kept connection per thread: cheaper than the tests' client, which would be measured."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        """:param headers: those that say who asks, and in which version."""
        self._port = port
        self._headers = {**headers, "Content-Type": "application/json"}
        self._local = threading.local()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call; returns the JSON body, or None.

        :raises RuntimeError: the status is 400 or more.
        """
        if not hasattr(self._local, "connection"):
            self._local.connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection: http.client.HTTPConnection = self._local.connection
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, f"/v2.1{path}", data, self._headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {content.decode(errors='replace')[:500]}")
        return json.loads(content) if content else None

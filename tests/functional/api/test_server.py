# SPDX-License-Identifier: Apache-2.0
"""The HTTP server: real sockets, slow and rude clients, and a stop that lets answers out."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nova_lite.api.server import Server
from tests.fixtures.whole_api import WholeAPI

PATIENCE = 20.0


@pytest.fixture
def serve(api: WholeAPI) -> Iterator[Callable[..., Server]]:
    """Serve an app on a free port."""
    started: list[Server] = []

    def start(app: Any = None) -> Server:
        started.append(Server(api.conf, app or api.app, port=0))
        started[-1].start()
        return started[-1]

    yield start
    for server in started:
        server.stop()


def _connection(server: Server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(*server.address, timeout=PATIENCE)


def test_serves_and_keeps_the_connection(serve: Callable[..., Server]) -> None:
    connection = _connection(serve())

    for _ in range(2):
        connection.request("GET", "/v2.1/")
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.read()


def test_body_in_chunks(serve: Callable[..., Server], api: WholeAPI) -> None:
    connection = _connection(serve())
    body = iter([b'{"flavor": {"name": "f", "ram": 64,', b' "vcpus": 1, "disk": 1}}'])

    headers = {"X-Auth-Token": api.token("root"), "Content-Type": "application/json"}
    connection.request("POST", "/v2.1/flavors", body, headers, encode_chunked=True)

    assert connection.getresponse().status == 200


def test_announced_gigabytes_are_not_waited_for(serve: Callable[..., Server]) -> None:
    with socket.create_connection(serve().address, timeout=PATIENCE) as client:
        client.sendall(b"POST /v2.1/flavors HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000000\r\n\r\n{")
        answer = b""
        while chunk := client.recv(65536):
            answer += chunk

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in answer.lower()


def test_unread_chunks_are_no_new_request(serve: Callable[..., Server]) -> None:
    hidden = b"GET /v2.1/ HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(serve().address, timeout=PATIENCE) as client:
        client.sendall(
            b"POST /v2.1/flavors HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            + f"{len(hidden):x}\r\n".encode()
            + hidden
            + b"\r\n0\r\n\r\n"
        )
        answer = b""
        try:
            while chunk := client.recv(65536):
                answer += chunk
        except ConnectionResetError:
            assert answer

    assert answer.count(b"HTTP/1.1 ") == 1


def test_stop_waits_for_what_is_being_answered(serve: Callable[..., Server]) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        entered.set()
        assert leave.wait(PATIENCE)
        start_response("200 OK", [("Content-Length", "4")])
        return [b"done"]

    server = serve(slow)
    connection = _connection(server)
    connection.request("GET", "/")
    assert entered.wait(PATIENCE)

    stopping = threading.Thread(target=server.stop)
    stopping.start()
    leave.set()

    assert connection.getresponse().read() == b"done"
    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    server.stop()
    with pytest.raises(OSError):
        socket.create_connection(server.address, timeout=1)

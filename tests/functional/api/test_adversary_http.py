# SPDX-License-Identifier: Apache-2.0
"""Clients that mean ill, below HTTP's good manners: broken framing, smuggled headers, and bodies that never come."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova_lite.api import request_body
from nova_lite.api.request_body import Body, BrokenBody, ChunkedBody
from nova_lite.api.server import Server
from tests.fixtures.whole_api import WholeAPI

PATIENCE = 20.0
LOGIN = b"POST /v3/auth/tokens HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


@pytest.fixture
def server(api: WholeAPI) -> Iterator[Server]:
    api.conf.set_override("threads", 2, group="api")
    server = Server(api.conf, api.app, port=0)
    server.start()
    yield server
    server.stop()


def _ask(server: Server, request: bytes) -> bytes:
    """Send bytes, and return what is answered until the server closes the connection."""
    answer = b""
    with socket.create_connection(server.address, timeout=PATIENCE) as client:
        try:
            client.sendall(request)
            while chunk := client.recv(65536):
                answer += chunk
        except ConnectionError:
            assert answer, "the connection was closed without an answer"
    return answer


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "body",
    [
        b"zz\r\nabc\r\n",
        b"-1\r\nabc\r\n",
        b"3\r\nabcde\r\n0\r\n\r\n",
        b"3\nabc\r\n",
        b"+3\r\nabc\r\n",
        b"0x3\r\nabc\r\n",
        b"1_0\r\n" + b"a" * 16 + b"\r\n0\r\n\r\n",
        b"1" * 20 + b"\r\nabc",
        b"1;" + b"x" * 5000,
    ],
)
def test_chunks_that_are_none_are_400(server: Server, body: bytes) -> None:
    assert _status(_ask(server, LOGIN + b"Transfer-Encoding: chunked\r\n\r\n" + body)) == 400


def test_a_chunk_is_not_read_beyond_what_a_body_may_have(server: Server, api: WholeAPI) -> None:
    begun = LOGIN + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFF\r\n"

    assert _status(_ask(server, begun + b" " * (api.conf.api.max_request_body + 65536))) == 413


def test_an_upload_in_broken_chunks_leaves_the_image_without_content(server: Server, api: WholeAPI) -> None:
    body = {"name": "i", "disk_format": "raw", "container_format": "bare"}
    image = api.good("POST", "/image/v2/images", body)["id"]
    head = f"PUT /image/v2/images/{image}/file HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {api.token('root')}\r\n"
    head += "Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert _status(_ask(server, head.encode() + b"3\r\nabc\r\nzz\r\n")) == 400
    assert api.good("GET", f"/image/v2/images/{image}")["status"] == "queued"
    assert not list(Path(api.conf.image.path).iterdir())


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}",
        b"Content-Length: -2\r\n\r\n{}",
        b"Content-Length: +2\r\n\r\n{}",
        b"Content-Length: 1_0\r\n\r\n{}",
        b"Host: y\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_requests_that_a_proxy_may_read_in_another_way_are_400(server: Server, headers: bytes) -> None:
    hidden = b"GET /v2.1 HTTP/1.1\r\nHost: x\r\n\r\n"

    answer = _ask(server, LOGIN + headers + hidden)

    assert _status(answer) == 400
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("name", ["X_Auth_Token", "X-Auth_Token"])
def test_a_header_with_an_underscore_is_none(server: Server, api: WholeAPI, name: str) -> None:
    token = api.token("root")

    answer = _ask(server, f"GET /v2.1/servers HTTP/1.0\r\nHost: x\r\n{name}: {token}\r\n\r\n".encode())

    assert _status(answer) == 401


def test_connections_that_say_nothing_keep_no_thread(server: Server) -> None:
    silent = [socket.create_connection(server.address, timeout=PATIENCE) for _ in range(10)]
    try:
        assert _status(_ask(server, b"GET /v2.1 HTTP/1.0\r\nHost: x\r\n\r\n")) == 200
    finally:
        for each in silent:
            each.close()


class Drip:
    """A connection on which a byte comes whenever one is waited for, or an error."""

    def __init__(self, byte: bytes = b"a", error: OSError | None = None) -> None:
        self._byte, self._error = byte, error

    def read1(self, size: int) -> bytes:
        if self._error:
            raise self._error
        return self._byte


@pytest.mark.parametrize("make", [lambda source: Body(source, 10**6), ChunkedBody], ids=["known", "chunked"])
def test_a_body_that_drips_in_is_given_up(make: object, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]

    def tick() -> float:
        now[0] += 1.0  # each byte takes a second
        return now[0]

    monkeypatch.setattr(request_body.time, "monotonic", tick)

    with pytest.raises(BrokenBody):
        make(Drip()).read()  # type: ignore[operator]
    assert now[0] < 1100


def test_a_connection_that_breaks_is_the_senders_fault() -> None:
    with pytest.raises(BrokenBody):
        Body(Drip(error=TimeoutError("timed out")), 10).read(10)

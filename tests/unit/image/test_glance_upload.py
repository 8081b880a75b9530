# SPDX-License-Identifier: Apache-2.0
"""Images of servers on their way into Glance: made with the user's token, filled and removed with the service's."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nova_lite import exception
from nova_lite.image.driver import ImageServiceUnavailable
from tests.unit.image.test_glance import client

DESCRIBED = {"name": "mine", "disk_format": "qcow2", "visibility": "private", "properties": {"image_type": "snapshot"}}


class Glance(ThreadingHTTPServer):
    """Keeps what it is given; a token of "stranger" may make nothing, and an image that is "saving" takes nothing."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.images: dict[str, dict[str, Any]] = {}
        self.content: dict[str, bytes] = {}


class Handler(BaseHTTPRequestHandler):
    server: Glance

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        body = json.loads(self._body())
        if self.headers["X-Auth-Token"] == "stranger":
            self._answer(403)
            return
        image_id = f"image-{len(self.server.images)}"
        self.server.images[image_id] = {**body, "id": image_id, "status": "queued"}
        self._answer(201, self.server.images[image_id])

    def do_PUT(self) -> None:  # noqa: N802 - the library's name
        content, image = self._body(), self.server.images.get(self.path.split("/")[3])
        if image is None or image["status"] != "queued":
            self._answer(404 if image is None else 409)
            return
        image["status"] = "active"
        self.server.content[image["id"]] = content
        self._answer(204)

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        path, _, query = self.path.partition("?")
        if path == "/v2/images":
            wanted = dict(urllib.parse.parse_qsl(query))
            assert wanted.pop("sort") == "created_at:desc"
            wanted.pop("limit")
            found = [i for i in self.server.images.values() if wanted.items() <= i.items()]
            self._answer(200, {"images": found[::-1]})
            return
        image = self.server.images.get(path.split("/")[3])
        self._answer(404 if image is None else 200, image)

    def do_DELETE(self) -> None:  # noqa: N802 - the library's name
        self._answer(204 if self.server.images.pop(self.path.split("/")[3], None) else 404)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _answer(self, status: int, body: Any = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Be quiet."""


@pytest.fixture
def glance() -> Iterator[Glance]:
    server = Glance()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_image_is_made_filled_and_removed(glance: Glance, tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{glance.server_port}"
    images, disk = client(endpoint, tmp_path), tmp_path / "disk"
    disk.write_bytes(b"content")

    image_id = images.create("alice", DESCRIBED)

    assert glance.images[image_id]["image_type"] == "snapshot"
    assert "properties" not in glance.images[image_id]
    assert images.location(image_id) == f"{endpoint}/v2/images/{image_id}"
    assert images.upload(image_id, disk) is None
    assert glance.content[image_id] == b"content"
    assert images.upload(image_id, disk) is None, "once more is no error"
    images.delete(image_id)
    images.delete(image_id)
    assert not glance.images


def test_what_glance_refuses(glance: Glance, tmp_path: Path) -> None:
    images, disk = client(f"http://127.0.0.1:{glance.server_port}", tmp_path), tmp_path / "disk"
    disk.write_bytes(b"content")

    with pytest.raises(exception.Forbidden):
        images.create("stranger", DESCRIBED)
    with pytest.raises(exception.SnapshotFailed, match="could not be found"):
        images.upload("none", disk)
    image_id = images.create("alice", DESCRIBED)
    glance.images[image_id]["status"] = "saving"
    with pytest.raises(exception.SnapshotFailed, match="answered 409"):
        images.upload(image_id, disk)


def test_the_oldest_backups_go(glance: Glance, tmp_path: Path) -> None:
    images = client(f"http://127.0.0.1:{glance.server_port}", tmp_path)
    made = [images.create("alice", DESCRIBED) for _ in range(4)]
    for image in glance.images.values():
        image["status"] = "active"
    glance.images[made[0]]["image_type"] = "backup"

    images.rotate({"image_type": "snapshot"}, 2)

    assert sorted(glance.images) == [made[0], made[2], made[3]]


def test_a_glance_that_does_not_answer(tmp_path: Path) -> None:
    images = client("http://127.0.0.1:9", tmp_path)
    (tmp_path / "disk").write_bytes(b"x")

    with pytest.raises(ImageServiceUnavailable):
        images.delete("image")
    with pytest.raises(exception.SnapshotFailed, match="does not answer"):
        images.upload("image", tmp_path / "disk")

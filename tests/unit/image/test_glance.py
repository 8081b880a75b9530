# SPDX-License-Identifier: Apache-2.0
"""The Glance client against an HTTP server that speaks the parts of Glance's API v2 that it uses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from oslo_config import cfg

from nova_lite import conf as nova_conf
from nova_lite import exception
from nova_lite.image.driver import ImageServiceUnavailable
from nova_lite.image.glance import GlanceImages
from nova_lite.objects.image import Image

IMAGE_ID = "6f2f5d6c-0000-4000-8000-000000000001"
CONTENT = b"content" * 1000
SHOWN = {
    "id": IMAGE_ID,
    "name": "cirros",
    "status": "active",
    "disk_format": "qcow2",
    "container_format": "bare",
    "size": len(CONTENT),
    "min_disk": 1,
    "min_ram": 64,
    "owner": "project",
    "visibility": "public",
    "checksum": "0" * 32,
    "tags": [],
    "self": "/v2/images/" + IMAGE_ID,
    "file": "/v2/images/" + IMAGE_ID + "/file",
    "schema": "/v2/schemas/image",
    "hw_disk_bus": "scsi",
    "os_type": "linux",
}


class Glance(BaseHTTPRequestHandler):
    """One image; a token of "stranger" does not see it, "broken" breaks the server."""

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        token = self.headers.get("X-Auth-Token")
        if token == "broken":
            self._answer(500, b"")
        elif token == "stranger" or not self.path.startswith(f"/v2/images/{IMAGE_ID}"):
            self._answer(404, b"")
        elif self.path.endswith("/file"):
            self._answer(200, CONTENT, "application/octet-stream")
        else:
            self._answer(200, json.dumps(SHOWN).encode())

    def _answer(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Be quiet."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Glance)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def client(endpoint: str, tmp_path: Path, max_size_mb: int = 1) -> GlanceImages:
    """Return a client whose own credentials are those of a Glance without Keystone."""
    file = tmp_path / "nova-lite.conf"
    file.write_text(
        f"[image]\nendpoint = {endpoint}\nmax_size_mb = {max_size_mb}\n[glance]\nauth_type = none\ntimeout = 5\n"
    )
    conf = cfg.ConfigOpts()
    nova_conf.register(conf)
    conf([], project="nova-lite", default_config_files=[str(file)])
    return GlanceImages(conf)


def test_show_tells_what_the_user_may_see(endpoint: str, tmp_path: Path) -> None:
    image = client(endpoint, tmp_path).show("token", IMAGE_ID)

    assert (image.id, image.name, image.status, image.disk_format) == (IMAGE_ID, "cirros", "active", "qcow2")
    assert (image.size, image.min_disk, image.min_ram) == (len(CONTENT), 1, 64)
    assert image.properties == {"hw_disk_bus": "scsi", "os_type": "linux"}


def test_endpoint_may_name_the_version(endpoint: str, tmp_path: Path) -> None:
    assert client(f"{endpoint}/v2/", tmp_path).show(None, IMAGE_ID).id == IMAGE_ID


def test_image_that_is_not_there_or_not_to_be_seen_is_not_found(endpoint: str, tmp_path: Path) -> None:
    images = client(endpoint, tmp_path)

    for token, image_id in (
        ("stranger", IMAGE_ID),
        ("token", "6f2f5d6c-0000-4000-8000-000000000002"),
        ("token", "../x"),
    ):
        with pytest.raises(exception.ImageNotFound):
            images.show(token, image_id)


def test_glance_that_fails_or_is_away_is_unavailable(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(ImageServiceUnavailable, match="500"):
        client(endpoint, tmp_path).show("broken", IMAGE_ID)
    with pytest.raises(ImageServiceUnavailable, match="cannot be reached"):
        client("http://127.0.0.1:1", tmp_path).show("token", IMAGE_ID)


def test_fetch_writes_the_content(endpoint: str, tmp_path: Path) -> None:
    client(endpoint, tmp_path).fetch(Image(id=IMAGE_ID), tmp_path / "image")

    assert (tmp_path / "image").read_bytes() == CONTENT


def test_fetch_of_an_image_without_data_is_unacceptable(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(exception.ImageUnacceptable, match="no data"):
        client(endpoint, tmp_path).fetch(Image(id="6f2f5d6c-0000-4000-8000-000000000002"), tmp_path / "image")


def test_fetch_from_a_glance_that_is_away_fails_the_build(tmp_path: Path) -> None:
    with pytest.raises(exception.BuildFailed) as failure:
        client("http://127.0.0.1:1", tmp_path).fetch(Image(id=IMAGE_ID), tmp_path / "image")

    assert not isinstance(failure.value, exception.ImageUnacceptable), "another host may fare better"

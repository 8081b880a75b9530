# SPDX-License-Identifier: Apache-2.0
"""Input that means ill: what is refused with a sentence, and costs and stores nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from nova_lite.api import image_files
from nova_lite.db import models
from tests.fixtures.whole_api import WholeAPI

SERVER = "aaaaaaaa-0000-4000-8000-000000000001"


@pytest.fixture
def image(api: WholeAPI) -> str:
    body = {"name": "i", "disk_format": "raw", "container_format": "bare", "visibility": "public"}
    made: str = api.good("POST", "/image/v2/images", body)["id"]
    stream = {"Content-Type": "application/octet-stream"}
    assert api.ask("PUT", f"/image/v2/images/{made}/file", bytes(1024), headers=stream).status_code == 204
    return made


@pytest.fixture
def flavor(api: WholeAPI) -> str:
    body = {"flavor": {"name": "f", "vcpus": 1, "ram": 64, "disk": 1}}
    return str(api.good("POST", "/v2.1/flavors", body)["flavor"]["id"])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", f"/v2.1/servers/{SERVER}", {"server": {"hostname": "name\n"}}),
        ("POST", f"/v2.1/servers/{SERVER}/metadata", {"metadata": {"key\n": "value"}}),
        ("PUT", f"/v2.1/servers/{SERVER}/metadata/key%0A", {"meta": {"key\n": "value"}}),
        ("POST", "/v2.1/flavors", {"flavor": {"name": "f", "vcpus": "1\n", "ram": 1, "disk": 1}}),
        ("POST", "/v2.1/flavors", {"flavor": {"name": "f", "vcpus": 1, "ram": 1, "disk": 1, "id": "x\n"}}),
    ],
)
def test_a_line_feed_at_the_end_is_not_overlooked(api: WholeAPI, method: str, path: str, body: Any) -> None:
    api.add_host("h1")
    api.add_instance(SERVER, project="admin")

    answer = api.ask(method, path, body)

    assert answer.status_code == 400
    assert "\\Z" not in answer.json["badRequest"]["message"], "the pattern as the documentation has it"
    assert api.count(models.flavors) == 0


def test_a_query_number_with_a_line_feed_is_400(api: WholeAPI) -> None:
    assert api.ask("GET", "/v2.1/servers", query_string="limit=1%0A").status_code == 400


@pytest.mark.parametrize("name", ["created_at", "launched_at", "terminated_at"])
@pytest.mark.parametrize("time", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_the_first_and_the_last_second_that_there_are_match_nothing(api: WholeAPI, name: str, time: str) -> None:
    assert api.good("GET", f"/v2.1/servers?{name}={time}") == {"servers": []}


def test_hints_are_not_multiplied_by_a_thousand_servers(api: WholeAPI, image: str, flavor: str) -> None:
    server = {"name": "s", "imageRef": image, "flavorRef": flavor, "networks": "none", "max_count": 1000}
    body = {"server": server, "os:scheduler_hints": {"anything": ["x" * 1000] * 100}}

    answer = api.ask("POST", "/v2.1/servers", body)

    assert answer.status_code == 400
    assert "scheduler hints" in answer.json["badRequest"]["message"]
    assert api.count(models.instances) == 0


def test_an_upload_that_fills_the_disk_is_413_and_leaves_nothing(
    api: WholeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    body = {"name": "i", "disk_format": "raw", "container_format": "bare"}
    image = api.good("POST", "/image/v2/images", body)["id"]
    monkeypatch.setattr(image_files.os, "fsync", full)
    stream = {"Content-Type": "application/octet-stream"}

    answer = api.ask("PUT", f"/image/v2/images/{image}/file", bytes(1024), headers=stream)

    assert answer.status_code == 413
    assert "disk space" in answer.json["message"]
    assert api.good("GET", f"/image/v2/images/{image}")["status"] == "queued"
    assert not list(Path(api.conf.image.path).iterdir())

# SPDX-License-Identifier: Apache-2.0
"""The embedded image service: what is uploaded, what is refused, who sees what."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nova_lite.api.image_lookup import show_image
from nova_lite.context import RequestContext
from nova_lite.db import models
from nova_lite.exception import ImageNotFound
from tests.fixtures.whole_api import WholeAPI

IMAGES = "/image/v2/images"
PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
OCTETS = {"Content-Type": "application/octet-stream"}


def _create(api: WholeAPI, user: str = "alice", **fields: Any) -> dict[str, Any]:
    body = {"name": "i", "disk_format": "raw", "container_format": "bare", **fields}
    created: dict[str, Any] = api.good("POST", IMAGES, body, user=user)
    return created


def _upload(api: WholeAPI, image_id: str, content: bytes, user: str = "alice") -> Any:
    return api.ask("PUT", f"{IMAGES}/{image_id}/file", content, user=user, headers=OCTETS)


def _patch(api: WholeAPI, image_id: str, *operations: dict[str, Any], user: str = "alice") -> Any:
    return api.ask("PATCH", f"{IMAGES}/{image_id}", list(operations), user=user, headers=PATCH)


def _status(api: WholeAPI, image_id: str) -> str:
    return str(api.good("GET", f"{IMAGES}/{image_id}")["status"])


def _files(api: WholeAPI) -> list[str]:
    directory = Path(api.conf.image.path)
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


def test_versions(api: WholeAPI) -> None:
    answer = api.ask("GET", "/image/", user=None)

    assert answer.status_code == 300
    assert answer.json["versions"][0]["links"][0]["href"].endswith("/image/v2/")
    assert api.ask("GET", "/image/versions", user=None).status_code == 200


def test_upload_and_download(api: WholeAPI) -> None:
    content = bytes(range(256)) * 1024
    image = _create(api, min_disk=1, os_distro="debian", **{"owner_specified.openstack.md5": ""})
    assert (image["status"], image["size"], image["os_distro"]) == ("queued", None, "debian")
    assert api.ask("GET", image["file"].join(("/image", "")), user="alice").status_code == 204

    assert _upload(api, image["id"], content).status_code == 204

    image = api.good("GET", f"{IMAGES}/{image['id']}", user="alice")
    assert (image["status"], image["size"], image["virtual_size"]) == ("active", len(content), len(content))
    assert image["checksum"] == hashlib.md5(content, usedforsecurity=False).hexdigest()
    assert image["os_hash_value"] == hashlib.sha512(content).hexdigest()
    assert api.ask("GET", f"{IMAGES}/{image['id']}/file", user="alice").content == content
    assert _files(api) == [image["id"]]


def test_content_is_given_once(api: WholeAPI) -> None:
    image = _create(api)
    _upload(api, image["id"], b"x" * 512)

    assert _upload(api, image["id"], b"y" * 512).status_code == 409
    assert api.ask("GET", f"{IMAGES}/{image['id']}/file").content == b"x" * 512


def test_image_with_a_backing_file_is_refused(api: WholeAPI, tmp_path: Path) -> None:
    evil = tmp_path / "evil.qcow2"
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-u", "-b", "/etc/passwd", "-F", "raw", str(evil), "1M"]
    subprocess.run(command, check=True)
    image = _create(api, disk_format="qcow2")

    answer = _upload(api, image["id"], evil.read_bytes())

    assert answer.status_code == 400
    assert "safe" in answer.json["message"] or "backing" in answer.json["message"]
    assert str(tmp_path) not in answer.text
    assert _status(api, image["id"]) == "killed"
    assert _files(api) == []


def test_content_of_another_format_is_refused(api: WholeAPI) -> None:
    image = _create(api, disk_format="qcow2")

    assert _upload(api, image["id"], b"x" * 4096).status_code == 400
    assert _status(api, image["id"]) == "killed"


def test_content_that_is_too_large_is_refused(people: Path, bus: None, tmp_path: Path) -> None:
    api = WholeAPI(people, tmp_path, image__max_size_mb=1)
    image = _create(api)

    assert _upload(api, image["id"], b"x" * (2 << 20)).status_code == 413

    assert _status(api, image["id"]) == "queued"
    assert _files(api) == []
    api.close()


def test_upload_that_breaks_off_can_be_tried_again(api: WholeAPI) -> None:
    image = _create(api)
    broken = {**OCTETS, "Content-Length": "1000"}

    answer = api.client.simulate_put(
        f"{IMAGES}/{image['id']}/file", body=b"x" * 10, headers={**broken, "X-Auth-Token": api.token("alice")}
    )

    assert answer.status_code == 400
    assert _status(api, image["id"]) == "queued"
    assert _upload(api, image["id"], b"x" * 512).status_code == 204


def test_only_the_administrator_publishes(api: WholeAPI) -> None:
    body = {"name": "i", "disk_format": "raw", "container_format": "bare", "visibility": "public"}
    assert api.ask("POST", IMAGES, body, user="alice").status_code == 403
    assert api.count(models.images) == 0
    image = _create(api)
    change = {"op": "replace", "path": "/visibility", "value": "public"}

    assert _patch(api, image["id"], change).status_code == 403
    assert api.ask("GET", f"{IMAGES}/{image['id']}", user="bob").status_code == 404
    assert _patch(api, image["id"], change, user="root").status_code == 200
    assert api.good("GET", f"{IMAGES}/{image['id']}", user="bob")["visibility"] == "public"
    assert api.ask("DELETE", f"{IMAGES}/{image['id']}", user="bob").status_code == 403
    assert _patch(api, image["id"], {"op": "add", "path": "/x", "value": "y"}, user="bob").status_code == 403


def test_tenants_see_their_own_and_public_ones(api: WholeAPI) -> None:
    mine, _ = _create(api, name="mine"), _create(api, user="bob", name="other")
    public = _create(api, user="root", name="public", visibility="public")

    def names(user: str, query: str = "") -> set[str]:
        return {image["name"] for image in api.good("GET", f"{IMAGES}?{query}", user=user)["images"]}

    assert names("alice") == {"mine", "public"}
    assert names("root") == {"mine", "other", "public"}
    assert names("alice", "name=mine") == {"mine"}
    assert names("alice", f"id=in:{mine['id']},{public['id']}") == {"mine", "public"}
    assert names("alice", "visibility=public") == {"public"}
    assert names("alice", "status=active") == set()
    assert names("alice", f"owner={api.project['blue']}") == {"mine"}


def test_pages_and_order(api: WholeAPI) -> None:
    for name in ("b", "a", "c"):
        _create(api, name=name)

    first = api.good("GET", f"{IMAGES}?limit=2&sort=name:asc", user="alice")

    assert [image["name"] for image in first["images"]] == ["a", "b"]
    rest = api.good("GET", "/image" + first["next"], user="alice")
    assert [image["name"] for image in rest["images"]] == ["c"]
    assert api.ask("GET", f"{IMAGES}?sort=password:asc").status_code == 400
    assert api.ask("GET", f"{IMAGES}?limit=x").status_code == 400
    assert api.ask("GET", f"{IMAGES}?marker=x").status_code == 400


def test_pages_of_images_without_names(api: WholeAPI) -> None:
    for _ in range(3):
        _create(api, name=None)

    page = api.good("GET", f"{IMAGES}?limit=2&sort=name:asc", user="alice")

    assert len(api.good("GET", "/image" + page["next"], user="alice")["images"]) == 1


def test_properties_and_tags(api: WholeAPI) -> None:
    image = _create(api, tags=["b", "a"], hw_disk_bus="virtio")

    changed = _patch(
        api,
        image["id"],
        {"op": "replace", "path": "/name", "value": "new"},
        {"op": "add", "path": "/hw_vif_model", "value": "virtio"},
        {"op": "remove", "path": "/hw_disk_bus"},
    ).json

    assert (changed["name"], changed["hw_vif_model"], changed["tags"]) == ("new", "virtio", ["a", "b"])
    assert "hw_disk_bus" not in changed
    assert api.ask("PUT", f"{IMAGES}/{image['id']}/tags/c", user="alice").status_code == 204
    assert api.ask("DELETE", f"{IMAGES}/{image['id']}/tags/a", user="alice").status_code == 204
    assert api.good("GET", f"{IMAGES}?tag=c&tag=b", user="alice")["images"][0]["tags"] == ["b", "c"]
    assert api.good("GET", f"{IMAGES}?tag=a", user="alice")["images"] == []
    assert len(api.good("GET", f"{IMAGES}?hw_vif_model=virtio", user="alice")["images"]) == 1


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        ({"op": "replace", "path": "/status", "value": "active"}, 403),
        ({"op": "replace", "path": "/id", "value": "x"}, 403),
        ({"op": "remove", "path": "/name"}, 403),
        ({"op": "remove", "path": "/none"}, 409),
        ({"op": "replace", "path": "/none", "value": "x"}, 409),
        ({"op": "replace", "path": "/min_disk", "value": "x"}, 400),
        ({"op": "replace", "path": "/disk_format", "value": "vmdk"}, 400),
        ({"op": "add", "path": "/x", "value": 1}, 400),
        ({"op": "add", "path": "/x"}, 400),
        ({"op": "move", "path": "/x", "from": "/y"}, 400),
        ({"op": "add", "path": "x", "value": "y"}, 400),
        ({"op": "replace", "path": "/owner", "value": "x"}, 403),
    ],
)
def test_bad_patches(api: WholeAPI, operation: dict[str, Any], status: int) -> None:
    image = _create(api)

    assert _patch(api, image["id"], operation).status_code == status
    assert api.good("GET", f"{IMAGES}/{image['id']}") == image


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"disk_format": "vmdk"}, 400),
        ({"min_ram": -1}, 400),
        ({"min_ram": 2**31}, 400),
        ({"id": "x"}, 400),
        ({"id": "../../etc/passwd"}, 400),
        ({"size": 1}, 403),
        ({"x": 1}, 400),
        ({"n" * 256: "x"}, 400),
        ({"owner": "other"}, 403),
        ({"tags": "x"}, 400),
    ],
)
def test_bad_creates(api: WholeAPI, fields: dict[str, Any], status: int) -> None:
    body = {"name": "i", "disk_format": "raw", "container_format": "bare", **fields}

    assert api.ask("POST", IMAGES, body, user="alice").status_code == status
    assert api.count(models.images) == 0


def test_delete(api: WholeAPI) -> None:
    image = _create(api)
    _upload(api, image["id"], b"x" * 512)
    _patch(api, image["id"], {"op": "replace", "path": "/protected", "value": True})
    assert api.ask("DELETE", f"{IMAGES}/{image['id']}", user="alice").status_code == 403
    _patch(api, image["id"], {"op": "replace", "path": "/protected", "value": False})

    assert api.ask("DELETE", f"{IMAGES}/{image['id']}", user="alice").status_code == 204

    assert _files(api) == []
    assert api.ask("GET", f"{IMAGES}/{image['id']}", user="alice").status_code == 404


def test_lookup_for_a_server(api: WholeAPI) -> None:
    image = _create(api, hw_disk_bus="virtio")
    alice = RequestContext(project_id=api.project["blue"], overwrite=False)
    bob = RequestContext(project_id=api.project["red"], overwrite=False)

    found = show_image(api.services, alice, image["id"])

    assert (found.id, found.status, found.properties) == (image["id"], "queued", {"hw_disk_bus": "virtio"})
    with pytest.raises(ImageNotFound):
        show_image(api.services, bob, image["id"])

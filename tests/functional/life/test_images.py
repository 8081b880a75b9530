# SPDX-License-Identifier: Apache-2.0
"""Images of servers in the whole cloud: they become active with their content, or go away with their failure."""

from __future__ import annotations

from typing import Any

import pytest

from nova_lite import exception
from nova_lite.image.directory import DirectoryImages
from tests.fixtures import faults
from tests.fixtures.client import ApiError, Client
from tests.fixtures.cloud import wait_for
from tests.fixtures.inside import InsideCloud
from tests.functional.life.test_pause_and_suspend import last_action, settled


def image_of(client: Client, image_id: str) -> dict[str, Any] | None:
    answer = client.session.get(f"{client.url}/image/v2/images/{image_id}", timeout=30)
    return dict(answer.json()) if answer.status_code == 200 else None


def content_of(client: Client, image_id: str) -> bytes:
    return bytes(client.session.get(f"{client.url}/image/v2/images/{image_id}/file", timeout=30).content)


def files(inside: InsideCloud) -> set[str]:
    """Return what is in the directory of images and in that of copies."""
    directories = (inside.directory / "state/images", inside.directory / "state/snapshots")
    return {path.name for directory in directories if directory.is_dir() for path in directory.iterdir()}


def test_an_image_becomes_active_with_its_content(inside: InsideCloud, client: Client, server: str) -> None:
    image_id = client.act(server, createImage={"name": "mine"})["image_id"]
    found = settled(client, server)
    assert found["status"] == "ACTIVE"
    image = image_of(client, image_id)
    assert image is not None
    assert (image["status"], image["name"], image["disk_format"]) == ("active", "mine", "qcow2")
    content = content_of(client, image_id)
    assert content.startswith(b"QFI\xfb") and len(content) == image["size"]
    assert image["virtual_size"] == 1 << 30
    action = last_action(client, server)
    assert (action["action"], action["events"][0]["event"]) == ("createImage", "compute_snapshot_instance")
    other = client.boot("from-snapshot", client.flavor(), imageRef=image_id)
    assert settled(client, other)["status"] == "ACTIVE"
    client.delete([other])


def test_the_steps_are_shown_while_they_are_done(
    inside: InsideCloud, client: Client, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = DirectoryImages.upload
    seen: list[Any] = []

    def watched(self: DirectoryImages, image_id: str, *more: Any) -> Any:
        image = image_of(client, image_id)
        seen.append((client.server(server)["OS-EXT-STS:task_state"], image and image["status"]))
        return upload(self, image_id, *more)

    monkeypatch.setattr(DirectoryImages, "upload", watched)
    client.act(server, createImage={"name": "mine"})
    settled(client, server)
    assert seen == [("image_uploading", "saving")]


@pytest.mark.parametrize("state", ["os_stop", "pause", "suspend"])
def test_a_server_that_does_not_run_stays_what_it_is(client: Client, server: str, state: str) -> None:
    client.act(server, **{state: None})
    before = settled(client, server)["status"]
    image_id = client.act(server, createImage={"name": "mine"})["image_id"]
    assert settled(client, server)["status"] == before
    image = image_of(client, image_id)
    assert image is not None and image["status"] == "active"


@pytest.mark.parametrize("step", ["snapshot", "hang", "upload"])
def test_a_failure_removes_the_image_and_leaves_the_server(
    inside: InsideCloud, client: Client, server: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.act(server, pause=None)
    settled(client, server)
    before = files(inside)
    fault: dict[str, Any] = {}
    if step == "upload":

        def refuse(*_arguments: object) -> None:
            raise exception.SnapshotFailed(reason="the store is full")

        monkeypatch.setattr(DirectoryImages, "upload", refuse)
    else:
        fault = {"snapshot": {"hang": True} if step == "hang" else {"fail": "the store is full"}}
    with faults.injected(inside.directory, {"*": fault}):
        image_id = client.act(server, createImage={"name": "mine"})["image_id"]
        found = settled(client, server)
    assert found["status"] == "PAUSED"
    assert ("hangs" if step == "hang" else "the store is full") in last_action(client, server)["message"]
    assert image_of(client, image_id) is None
    assert files(inside) == before


def test_a_delete_of_the_server_in_the_middle_wins(
    inside: InsideCloud, client: Client, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(inside)
    upload = DirectoryImages.upload

    def slow(self: DirectoryImages, image_id: str, *more: Any) -> Any:
        client.call("DELETE", f"/servers/{server}")
        return upload(self, image_id, *more)

    monkeypatch.setattr(DirectoryImages, "upload", slow)
    image_id = client.act(server, createImage={"name": "mine"})["image_id"]
    wait_for(lambda: not client.servers([server]), 10)
    assert image_of(client, image_id) is None
    wait_for(lambda: files(inside) == before, 10)


def test_an_image_that_is_deleted_in_the_middle_leaves_nothing(
    inside: InsideCloud, client: Client, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(inside)
    upload = DirectoryImages.upload

    def slow(self: DirectoryImages, image_id: str, *more: Any) -> Any:
        assert client.session.delete(f"{client.url}/image/v2/images/{image_id}", timeout=30).status_code == 204
        return upload(self, image_id, *more)

    monkeypatch.setattr(DirectoryImages, "upload", slow)
    image_id = client.act(server, createImage={"name": "mine"})["image_id"]
    assert settled(client, server)["status"] == "ACTIVE"
    assert "deleted while it was made" in last_action(client, server)["message"]
    assert image_of(client, image_id) is None
    wait_for(lambda: files(inside) == before, 10)


def test_backups_are_rotated(inside: InsideCloud, client: Client, server: str) -> None:
    kept = client.act(server, createBackup={"name": "w", "backup_type": "weekly", "rotation": 1})["image_id"]
    settled(client, server)
    made = []
    for number in range(4):
        body = {"name": f"d{number}", "backup_type": "daily", "rotation": 2}
        made.append(client.act(server, createBackup=body)["image_id"])
        settled(client, server)
    assert [image_of(client, image_id) is not None for image_id in made] == [False, False, True, True]
    assert image_of(client, kept) is not None, "a backup of another type was deleted"
    wait_for(lambda: not files(inside) & set(made[:2]), 10)
    action = last_action(client, server)
    assert (action["action"], action["events"][0]["event"]) == ("createBackup", "compute_backup_instance")
    none = client.act(server, createBackup={"name": "none", "backup_type": "daily", "rotation": 0})["image_id"]
    settled(client, server)
    assert [image_of(client, image_id) for image_id in (*made, none)] == [None] * 5


def test_while_an_image_is_made_nothing_else_begins(inside: InsideCloud, client: Client, server: str) -> None:
    with faults.injected(inside.directory, {"*": {"snapshot": {"delay": 0.5}}}):
        client.act(server, createImage={"name": "mine"})
        with pytest.raises(ApiError, match="image_"):
            client.act(server, os_stop=None)
        settled(client, server)


def test_the_hosts_of_an_aggregate_fetch_images_before_they_are_needed(inside: InsideCloud, client: Client) -> None:
    image = client.image("wanted", content=bytes(2048))
    cached = inside.directory / "state" / "image-cache" / image
    aggregate = client.call("POST", "/os-aggregates", {"aggregate": {"name": "near"}})["aggregate"]["id"]
    path = f"/os-aggregates/{aggregate}"
    client.call("POST", f"{path}/images", {"cache": [{"id": image}]})

    client.call("POST", f"{path}/action", {"add_host": {"host": "host1"}})
    assert not cached.exists()
    client.call("POST", f"{path}/images", {"cache": [{"id": image}]})

    wait_for(cached.exists, 10)
    assert cached.read_bytes() == bytes(2048)

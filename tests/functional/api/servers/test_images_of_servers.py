# SPDX-License-Identifier: Apache-2.0
"""Making images of servers: the answer names an image that is there, and waits for its content."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db import images, models, operations
from tests.fixtures.server_api import IMAGE, ServerAPI


def _act(api: ServerAPI, server_id: str, action: dict[str, Any], user: str = "alice", version: str = "2.96") -> Any:
    return api.call("POST", f"/servers/{server_id}/action", action, user, version)


def _give_base(api: ServerAPI, **values: Any) -> None:
    api.db.write(lambda conn: images.update(conn, IMAGE, values))


def test_the_image_is_there_and_says_what_it_comes_from(api: ServerAPI) -> None:
    _give_base(api, min_ram=64, properties={"hw_disk_bus": "scsi", "img_signature": "x", "image_type": "other"})
    server_id = api.active()

    answer = _act(api, server_id, {"createImage": {"name": "mine", "metadata": {"a": "b"}}})

    assert answer.status_code == 202
    image = api.db.read(lambda conn: images.get(conn, answer.json["image_id"]))
    assert (image.name, image.status, image.visibility, image.owner) == (
        "mine",
        "queued",
        "private",
        api.project["alice"],
    )
    assert (image.disk_format, image.container_format, image.min_disk, image.min_ram) == ("qcow2", "bare", 1, 64)
    assert image.properties == {
        "hw_disk_bus": "scsi",
        "a": "b",
        "image_type": "snapshot",
        "instance_uuid": server_id,
        "user_id": api.user["alice"],
        "base_image_ref": IMAGE,
    }
    operation = api.db.read(lambda conn: operations.get(conn, api.conductor.hints[-1][0]))
    assert operation is not None
    assert operation.arguments == {"image_id": image.uuid, "stored": True}


@pytest.mark.parametrize(
    "action",
    [
        {"createImage": {"name": "mine"}},
        {"createBackup": {"name": "mine", "backup_type": "daily", "rotation": "2"}},
    ],
)
def test_below_2_45_the_answer_is_a_location(api: ServerAPI, action: dict[str, Any]) -> None:
    server_id = api.active()

    answer = _act(api, server_id, action, version="2.44")

    assert (answer.status_code, answer.text) == (202, "")
    image_id = api.db.read(
        lambda conn: conn.scalar(sa.select(models.images.c.uuid).order_by(models.images.c.id.desc()))
    )
    assert answer.headers["Location"].endswith(f"/image/v2/images/{image_id}")
    api.settle(server_id)
    assert "Location" not in _act(api, server_id, action, version="2.45").headers


@pytest.mark.parametrize(
    "action",
    [
        {"createImage": None},
        {"createImage": {}},
        {"createImage": {"name": ""}},
        {"createImage": {"name": "x" * 256}},
        {"createImage": {"name": "x", "metadata": {"a": 1}}},
        {"createImage": {"name": "x", "colour": "red"}},
        {"createBackup": {"name": "x", "backup_type": "daily"}},
        {"createBackup": {"name": "x", "backup_type": "daily", "rotation": -1}},
        {"createBackup": {"name": "x", "backup_type": "daily", "rotation": "many"}},
        {"createBackup": {"name": "x", "rotation": 1}},
        {"createBackup": {"backup_type": "daily", "rotation": 1}},
    ],
)
def test_bad_bodies_are_refused(api: ServerAPI, action: dict[str, Any]) -> None:
    before = api.count(models.images)
    server_id = api.active()

    assert _act(api, server_id, action).status_code == 400
    assert api.count(models.images) == before


def test_a_refused_request_makes_no_image(api: ServerAPI) -> None:
    before = api.count(models.images)
    server_id = api.active()
    too_many = {f"key{number}": "x" for number in range(129)}

    assert _act(api, server_id, {"createImage": {"name": "x", "metadata": too_many}}).status_code == 403
    api.settle(server_id, "building")
    assert _act(api, server_id, {"createImage": {"name": "x"}}).status_code == 409
    api.settle(server_id)
    old = sa.text("'2000-01-01 00:00:00.000000'")
    api.db.write(lambda conn: conn.execute(sa.update(models.services).values(last_seen_at=old)))
    assert _act(api, server_id, {"createImage": {"name": "x"}}).status_code == 409

    assert api.count(models.images) == before


def test_a_server_that_is_deleted_takes_its_unfinished_image_with_it(api: ServerAPI) -> None:
    server_id = api.active()
    image_id = _act(api, server_id, {"createImage": {"name": "x"}}).json["image_id"]

    assert api.call("DELETE", f"/servers/{server_id}").status_code == 204

    assert not api.db.read(lambda conn: images.exists(conn, image_id))


def test_the_users_metadata_has_the_last_word_on_an_image_and_not_on_a_backup(api: ServerAPI) -> None:
    metadata = {"image_type": "golden"}
    server_id = api.active()

    made = _act(api, server_id, {"createImage": {"name": "mine", "metadata": metadata}}).json["image_id"]
    api.settle(server_id)
    backup = {"name": "b", "backup_type": "daily", "rotation": 1, "metadata": metadata}
    kept = _act(api, server_id, {"createBackup": backup}).json["image_id"]

    types = [api.db.read(lambda conn, one=one: images.get(conn, one)).properties["image_type"] for one in (made, kept)]
    assert types == ["golden", "backup"]

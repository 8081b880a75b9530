# SPDX-License-Identifier: Apache-2.0
"""Rebuilding: what the body may say at each microversion, what is refused, and what is written at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db import instances, models, operations
from tests.fixtures.server_api import IMAGE, ServerAPI, add_image

OTHER = "22222222-2222-4222-8222-222222222222"


def _rebuild(
    api: ServerAPI, server_id: str, user: str = "alice", version: str = "2.96", image: str = IMAGE, **fields: Any
) -> Any:
    body = {"rebuild": {"imageRef": image, **fields}}
    return api.call("POST", f"/servers/{server_id}/action", body, user, version)


def test_what_the_user_changes_is_written_with_the_operation(api: ServerAPI) -> None:
    api.db.write(lambda conn: add_image(conn, OTHER, "other"))
    server_id = api.active(metadata={"old": "item"})

    answer = _rebuild(
        api,
        server_id,
        image=OTHER,
        name="renamed",
        description="new",
        metadata={"a": "b"},
        accessIPv4="192.0.2.1",
        hostname="other-name",
        user_data="aGVsbG8=",
        adminPass="secret",
        **{"OS-DCF:diskConfig": "AUTO"},
    )

    assert answer.status_code == 202
    shown = answer.json["server"]
    assert (shown["name"], shown["status"], shown["adminPass"]) == ("renamed", "REBUILD", "secret")
    assert (shown["image"]["id"], shown["metadata"], shown["description"]) == (OTHER, {"a": "b"}, "new")
    assert answer.headers["Location"].endswith(f"/servers/{server_id}")
    row = api.db.read(lambda conn: instances.get(conn, server_id))
    assert (row.image_ref, row.hostname, row.access_ip_v4) == (OTHER, "other-name", "192.0.2.1")
    assert row.disk_config == "AUTO"
    assert row.user_data == "aGVsbG8="
    operation = api.db.read(lambda conn: operations.get(conn, api.conductor.hints[-1][0]))
    assert operation is not None and operation.arguments["before"]["image_ref"] == IMAGE
    assert operation.arguments["before"]["metadata"] == json.dumps({"old": "item"})


def test_a_key_pair_can_be_changed_and_taken_away(api: ServerAPI) -> None:
    key = {"user_id": api.user["alice"], "name": "mine", "fingerprint": "f", "public_key": "ssh-rsa AAAA"}
    api.db.write(lambda conn: conn.execute(sa.insert(models.key_pairs).values(**key)))
    server_id = api.active()

    assert _rebuild(api, server_id, key_name="mine").json["server"]["key_name"] == "mine"
    assert api.db.read(lambda conn: instances.get(conn, server_id)).key_data == "ssh-rsa AAAA"
    api.settle(server_id)
    assert _rebuild(api, server_id, key_name=None).json["server"]["key_name"] is None
    assert api.db.read(lambda conn: instances.get(conn, server_id)).key_data is None
    api.settle(server_id)
    answer = _rebuild(api, server_id, key_name="yours")
    assert (answer.status_code, answer.json["badRequest"]["message"]) == (400, "Invalid key_name provided.")
    assert api.call("GET", f"/servers/{server_id}").json["server"]["OS-EXT-STS:task_state"] is None


@pytest.mark.parametrize(
    ("field", "value", "since"),
    [
        ("description", "text", "2.19"),
        ("key_name", None, "2.54"),
        ("user_data", None, "2.57"),
        ("trusted_image_certificates", None, "2.63"),
        ("hostname", "web-1", "2.90"),
        ("hostname", "web.example.org", "2.94"),
    ],
)
def test_a_field_is_known_from_its_microversion_on(api: ServerAPI, field: str, value: Any, since: str) -> None:
    server_id = api.active()
    before = f"2.{int(since.split('.')[1]) - 1}"

    assert _rebuild(api, server_id, version=before, **{field: value}).status_code == 400
    assert _rebuild(api, server_id, version=since, **{field: value}).status_code == 202


def test_the_answer_has_what_its_microversion_has(api: ServerAPI) -> None:
    server_id = api.active()
    fields = {}
    for version in ("2.1", "2.53", "2.54", "2.57", "2.75"):
        api.settle(server_id)
        fields[version] = set(_rebuild(api, server_id, version=version).json["server"])

    assert "key_name" not in fields["2.53"]
    assert fields["2.54"] - fields["2.53"] == {"key_name"}
    assert fields["2.57"] - fields["2.54"] == {"user_data"}
    assert "OS-EXT-STS:vm_state" not in fields["2.57"] and "OS-EXT-STS:vm_state" in fields["2.75"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"imageRef": "no-uuid"}, "imageRef"),
        ({"imageRef": None}, "imageRef"),
        ({"imageRef": OTHER}, "Cannot find image for rebuild"),
        ({"name": ""}, "name"),
        ({"name": " padded "}, "name"),
        ({"metadata": {"a": 1}}, "not of type 'string'"),
        ({"accessIPv4": "1.2.3"}, "accessIPv4"),
        ({"user_data": "not base64!"}, "user_data"),
        ({"hostname": "-x"}, "hostname"),
        ({"preserve_ephemeral": "maybe"}, "preserve_ephemeral"),
        ({"preserve_ephemeral": True}, "preserve_ephemeral"),
        ({"trusted_image_certificates": ["a"]}, "trusted_image_certificates"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_bad_bodies_are_refused(api: ServerAPI, fields: dict[str, Any], text: str) -> None:
    server_id = api.active()
    body = {"rebuild": {"imageRef": IMAGE, **fields}}

    answer = api.call("POST", f"/servers/{server_id}/action", body)

    assert answer.status_code == 400
    assert text in answer.json["badRequest"]["message"]
    assert api.count(models.operations) == 1


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ({"min_ram": 1024}, "Flavor's memory is too small"),
        ({"min_disk": 2}, "Flavor's disk is smaller than the minimum size"),
        ({"size": 2 << 30}, "Flavor's disk is too small"),
        ({"status": "queued"}, "is not active"),
    ],
)
def test_an_image_that_does_not_fit_the_flavor_is_refused(api: ServerAPI, image: dict[str, Any], text: str) -> None:
    api.db.write(lambda conn: add_image(conn, OTHER, "other", **image))
    server_id = api.active()

    answer = _rebuild(api, server_id, image=OTHER)

    assert answer.status_code == 400
    assert text in answer.json["badRequest"]["message"]


def test_an_image_that_the_host_cannot_run_is_refused(api: ServerAPI) -> None:
    node = {
        "uuid": OTHER, "service_id": 1, "host": "host1", "node": "host1", "hypervisor_type": "QEMU",
        "hypervisor_version": 1, "host_ip": "127.0.0.1", "cpu_info": "{}", "architectures": '["x86_64"]',
        "vm_modes": '["hvm"]', "cpu_allocation_ratio": 1, "ram_allocation_ratio": 1, "disk_allocation_ratio": 1,
    }  # fmt: skip
    api.db.write(lambda conn: conn.execute(sa.insert(models.compute_nodes).values(**node)))
    api.db.write(lambda conn: add_image(conn, OTHER, "arm", properties='{"hw_architecture": "aarch64"}'))
    server_id = api.active()
    node_id = api.db.read(lambda conn: conn.scalar(sa.select(models.compute_nodes.c.id)))
    api.settle(server_id, node_id=node_id)

    answer = _rebuild(api, server_id, image=OTHER)

    assert answer.status_code == 400
    assert "unable to run what the image asks for (aarch64)" in answer.json["badRequest"]["message"]
    row = api.db.read(lambda conn: instances.get(conn, server_id))
    assert (row.image_ref, row.task_state) == (IMAGE, None)


def test_more_metadata_than_the_quota_allows(api: ServerAPI) -> None:
    server_id = api.active()

    answer = _rebuild(api, server_id, metadata={f"key{number}": "x" for number in range(129)})

    assert answer.status_code == 403
    assert "Quota exceeded for metadata_items" in answer.text


def test_the_files_of_the_old_guest_go_with_it(api: ServerAPI) -> None:
    server_id = api.create(version="2.56", personality=[{"path": "/old", "contents": ""}])
    api.settle(server_id)

    def files() -> Any:
        return instances.to_object(api.db.read(lambda conn: instances.get(conn, server_id))).injected_files

    new = [{"path": "/new", "contents": "aGVsbG8="}]
    assert _rebuild(api, server_id, version="2.56", personality=new).status_code == 202
    assert files() == (("/new", "aGVsbG8="),)
    operation = api.db.read(lambda conn: operations.get(conn, api.conductor.hints[-1][0]))
    assert operation is not None and json.loads(operation.arguments["before"]["injected_files"]) == [["/old", ""]]
    api.settle(server_id)
    assert _rebuild(api, server_id, version="2.56", personality=new * 6).status_code == 403
    assert _rebuild(api, server_id).status_code == 202
    assert files() == ()


def test_user_data_is_shown_once_to_everybody(api: ServerAPI) -> None:
    server_id = api.active(user_data="aGVsbG8=")

    shown = _rebuild(api, server_id, user="root", version="2.75").json["server"]

    assert shown["user_data"] == "aGVsbG8="
    assert "OS-EXT-SRV-ATTR:user_data" not in shown

# SPDX-License-Identifier: Apache-2.0
"""Creating servers: what is accepted is on the books as a whole, what is refused leaves nothing behind."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import oslo_messaging
import pytest
import sqlalchemy as sa

from nova_lite.db import instances, models
from nova_lite.db.instances import Caller
from nova_lite.objects.group import Group
from tests.fixtures.server_api import FLAVOR, IMAGE, ServerAPI, add_flavor, add_group, add_image, create_body


def _row(api: ServerAPI, server_id: str) -> instances.Instance:
    return api.db.read(lambda conn: instances.get(conn, server_id))


def _nothing_stored(api: ServerAPI) -> bool:
    return not (api.count(models.instances) or api.count(models.operations) or api.conductor.hints)


def test_create_writes_instance_operation_and_quota_and_hints_once(api: ServerAPI) -> None:
    answer = api.call("POST", "/servers", create_body())

    assert answer.status_code == 202
    server = answer.json["server"]
    assert set(server) == {"id", "links", "OS-DCF:diskConfig", "security_groups", "adminPass"}
    assert answer.headers["Location"] == server["links"][0]["href"]
    row = _row(api, server["id"])
    assert (row.vm_state, row.task_state, row.name, row.hostname) == ("building", "scheduling", "s1", "s1")
    operation = api.db.read(lambda conn: conn.execute(sa.select(models.operations)).one())
    assert (operation.kind, operation.instance_uuid, operation.status) == ("create", server["id"], "active")
    assert operation.request_id == answer.headers["X-OpenStack-Request-ID"]
    assert api.conductor.hints == [[operation.uuid]]
    usage = api.db.read(lambda conn: conn.execute(sa.select(models.quota_usages)).one())
    assert (usage.instances, usage.cores, usage.ram) == (1, 1, 512)


def test_create_costs_at_most_eight_statements(api: ServerAPI) -> None:
    api.create()

    with api.statements() as statements:
        api.create()

    assert len(statements) <= 8, "\n".join(statements)


def test_what_the_user_gave_reaches_scheduler_and_compute(api: ServerAPI) -> None:
    group = api.db.write(lambda conn: add_group(conn, api.project["alice"]))
    data = base64.b64encode(b"#!/bin/sh").decode()
    key = {
        "user_id": api.user["alice"],
        "name": "k",
        "fingerprint": "f",
        "public_key": "ssh-ed25519 AAAA",
    }
    api.db.write(lambda conn: conn.execute(sa.insert(models.key_pairs).values(**key)))

    server_id = api.create(
        hints={"group": group, "different_host": [group], "x": {"y": 1}},
        user_data=data,
        key_name="k",
        metadata={"a": "b"},
        tags=["t2", "t1"],
        config_drive="true",
        description="for tests",
        hostname="guest",
    )

    row = _row(api, server_id)
    told = instances.to_object(row, "host1", "node1")
    assert (told.host, told.node, told.user_data, told.key_data) == ("host1", "node1", data, "ssh-ed25519 AAAA")
    assert told.metadata == {"a": "b"}
    assert told.config_drive is True
    assert told.image is not None and told.image.id == IMAGE
    assert (told.flavor.name, told.hostname) == ("m1.tiny", "guest")
    assert [network.kind for network in told.networks] == ["none"]
    groups = api.db.read(lambda conn: instances.groups_of(conn, [row]))
    assert row.group_id is not None
    spec = instances.to_request_spec(row, groups[row.group_id], excluded_hosts=["h9"], request_id="req-1")
    assert spec.group == Group(row.group_id, group, "anti-affinity")
    assert spec.hints == {"group": [group], "different_host": [group], "x": ['{"y": 1}']}
    assert (spec.consumer, spec.excluded_hosts, spec.request_id) == (server_id, ("h9",), "req-1")
    shown = api.call("GET", f"/servers/{server_id}").json["server"]
    assert (shown["tags"], shown["server_groups"], shown["description"]) == (["t1", "t2"], [group], "for tests")


def test_create_run_again_finds_its_own_work(api: ServerAPI) -> None:
    api.create(max_count=2, min_count=2)
    rows = api.db.read(lambda conn: conn.execute(sa.select(models.instances.c.uuid)).scalars().all())
    flavor = instances.flavor_of(_row(api, rows[0]))
    again = instances.NewInstances(list(rows), ["a", "b"], ["a", "b"], flavor, None, "r-1", min_count=2)
    caller = Caller(api.project["alice"], api.user["alice"], "req-1")

    created = api.db.write(lambda conn: instances.create(conn, api.conf, again, caller))

    assert created.uuids == list(rows)
    assert sorted(created.operations) == sorted(api.conductor.hints[0])
    assert api.count(models.instances) == 2


def test_multi_create_numbers_names_and_hints_once(api: ServerAPI) -> None:
    api.create(name="web", min_count=3, max_count=3)

    names = [s["name"] for s in api.call("GET", "/servers?sort_key=display_name&sort_dir=asc").json["servers"]]
    assert names == ["web-1", "web-2", "web-3"]
    assert [len(hint) for hint in api.conductor.hints] == [3]


@pytest.mark.parametrize(("least", "most", "accepted"), [(1, 10, 7), (7, 9, 7), (3, 7, 7), (8, 9, 0), (2, 5, 5)])
def test_multi_create_makes_as_many_as_the_quota_allows(
    make_api: Callable[..., ServerAPI], least: int, most: int, accepted: int
) -> None:
    api = make_api(quota__instances=7)

    answer = api.call("POST", "/servers", create_body(min_count=least, max_count=most))

    assert answer.status_code == (202 if accepted else 403)
    assert api.count(models.instances) == api.count(models.operations) == accepted


def test_return_reservation_id_answers_nothing_else(api: ServerAPI) -> None:
    answer = api.call("POST", "/servers", create_body(return_reservation_id=True, min_count=2))

    assert list(answer.json) == ["reservation_id"]
    listed = api.call("GET", f"/servers?reservation_id={answer.json['reservation_id']}").json["servers"]
    assert len(listed) == 2


def test_a_broker_that_is_away_costs_nothing_but_the_hint(api: ServerAPI) -> None:
    api.conductor.error = oslo_messaging.MessageDeliveryFailure("away")

    api.create()

    assert api.count(models.operations) == 1


def test_the_block_device_that_clients_send_for_an_image_is_accepted(api: ServerAPI) -> None:
    device = {
        "uuid": IMAGE,
        "boot_index": 0,
        "source_type": "image",
        "destination_type": "local",
        "delete_on_termination": True,
    }

    assert api.create(block_device_mapping_v2=[device])
    assert api.create(block_device_mapping_v2=[device], imageRef="")


def test_networks_are_auto_when_left_out_below_2_37(api: ServerAPI) -> None:
    server_id = api.create(version="2.36")

    assert [request["kind"] for request in json.loads(_row(api, server_id).networks)] == ["auto"]


def test_administrators_may_name_the_host_in_both_ways(api: ServerAPI) -> None:
    by_zone = api.create("root", availability_zone="nova:host1:node1")
    by_host = api.create("root", host="host1")

    row = _row(api, by_zone)
    assert (row.requested_zone, row.requested_host, row.requested_node) == ("nova", "host1", "node1")
    assert _row(api, by_host).requested_host == "host1"


BAD: dict[str, dict[str, Any]] = {
    "no name": {"name": None},
    "empty name": {"name": ""},
    "name of spaces": {"name": "  "},
    "long name": {"name": "x" * 256},
    "name that is no text": {"name": 5},
    "no flavor": {"flavorRef": None},
    "unknown flavor": {"flavorRef": "nope"},
    "no image": {"imageRef": None},
    "empty image": {"imageRef": ""},
    "image that is no id": {"imageRef": "cirros"},
    "unknown image": {"imageRef": "22222222-2222-4222-8222-222222222222"},
    "networks left out": {"networks": None},
    "network by id": {"networks": [{"uuid": IMAGE}]},
    "network by port": {"networks": [{"port": IMAGE}]},
    "unknown network word": {"networks": "some"},
    "unknown field": {"colour": "blue"},
    "zero servers": {"min_count": 0},
    "min above max": {"min_count": 3, "max_count": 2},
    "huge number": {"max_count": 10**30},
    "more than a request may have": {"max_count": 1001},
    "count that is no number": {"min_count": "many"},
    "user data that is not base64": {"user_data": "#!/bin/sh"},
    "long user data": {"user_data": "A" * 65536},
    "unknown key": {"key_name": "nope"},
    "metadata that is a list": {"metadata": []},
    "metadata value that is a number": {"metadata": {"a": 1}},
    "long metadata key": {"metadata": {"k" * 256: "v"}},
    "config drive that is neither": {"config_drive": "perhaps"},
    "tag with a comma": {"tags": ["a,b"]},
    "too many tags": {"tags": [f"t{n}" for n in range(51)]},
    "bad host name": {"hostname": "-x"},
    "host name for several": {"hostname": "guest", "max_count": 2},
    "bad address": {"accessIPv4": "1.2.3"},
    "unknown zone": {"availability_zone": "moon"},
    "volume": {"block_device_mapping_v2": [{"source_type": "volume", "destination_type": "volume", "uuid": IMAGE}]},
    "legacy block device": {"block_device_mapping": [{"device_name": "vda", "volume_id": "x"}]},
    "another image in the block device": {
        "block_device_mapping_v2": [
            {"source_type": "image", "destination_type": "local", "boot_index": 0, "uuid": FLAVOR}
        ]
    },
    "trusted certificates": {"trusted_image_certificates": ["c"]},
    "unknown security group": {"security_groups": [{"name": "web"}]},
    "personality above 2.56": {"personality": []},
}


@pytest.mark.parametrize("fields", list(BAD.values()), ids=list(BAD))
def test_bad_input_is_refused_with_a_sentence_and_stores_nothing(api: ServerAPI, fields: dict[str, Any]) -> None:
    answer = api.call("POST", "/servers", create_body(**fields))

    assert answer.status_code == 400, answer.text
    assert len(answer.json["badRequest"]["message"]) > 10
    assert len(answer.text) < 2000
    assert _nothing_stored(api)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"server": null}', 400),
        (b'{"server": {"name": "\xff\xfe"}}', 400),
        (b'{"server": ' + b"[" * 100_000, 400),
        (b'{"server": {"name": "' + b"x" * 10_000_000 + b'"}}', 413),
    ],
    ids=["empty", "cut", "list", "null", "null server", "bad UTF-8", "deep", "10 MB"],
)
def test_malformed_bodies_are_refused(api: ServerAPI, body: bytes, status: int) -> None:
    answer = api.call("POST", "/servers", body)

    assert answer.status_code == status
    assert next(iter(answer.json.values()))["message"]
    assert _nothing_stored(api)


def test_files_go_to_the_guest_with_the_server(api: ServerAPI) -> None:
    given = [{"path": "/etc/motd", "contents": "aGVs\nbG8="}, {"path": "b", "contents": ""}]

    server_id = api.create(version="2.56", personality=given)

    row = api.db.read(lambda conn: instances.get(conn, server_id))
    assert instances.to_object(row).injected_files == (("/etc/motd", "aGVsbG8="), ("b", ""))
    assert api.create(version="2.56", personality=[])


@pytest.mark.parametrize(
    ("files", "resource"),
    [
        ([{"path": "/x", "contents": ""}] * 6, "injected_files"),
        ([{"path": "/" + "x" * 255, "contents": ""}], "injected_file_path_length"),
        ([{"path": "/x", "contents": "AAAA" * 3414}], "injected_file_content_bytes"),
    ],
)
def test_files_are_limited(api: ServerAPI, files: list[dict[str, str]], resource: str) -> None:
    answer = api.call("POST", "/servers", create_body("2.56", personality=files), version="2.56")

    assert (answer.status_code, resource in answer.text) == (403, True)
    assert _nothing_stored(api)


@pytest.mark.parametrize("file", [{"path": "/x"}, {"contents": ""}, {"path": "", "contents": ""}])
def test_half_a_file_is_refused(api: ServerAPI, file: dict[str, str]) -> None:
    answer = api.call("POST", "/servers", create_body("2.56", personality=[file]), version="2.56")

    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ({"status": "queued"}, "is not active"),
        ({"min_ram": 1024}, "memory is too small"),
        ({"min_disk": 2}, "smaller than the minimum size"),
        ({"size": 2 << 30}, "disk is too small"),
        ({"visibility": "private"}, "Can not find requested image"),
    ],
)
def test_images_that_do_not_fit_are_refused(api: ServerAPI, image: dict[str, Any], message: str) -> None:
    other = "33333333-3333-4333-8333-333333333333"
    api.db.write(lambda conn: add_image(conn, other, "other", **image))

    answer = api.call("POST", "/servers", create_body(imageRef=other))

    assert answer.status_code == 400
    assert message in answer.json["badRequest"]["message"]


def test_a_flavor_without_disk_is_for_administrators(api: ServerAPI) -> None:
    api.db.write(lambda conn: add_flavor(conn, "0", "diskless", 64, root_gb=0))

    assert api.call("POST", "/servers", create_body(flavorRef="0")).status_code == 403
    assert api.call("POST", "/servers", create_body(flavorRef="0"), "root").status_code == 202


def test_a_private_flavor_does_not_exist_for_others(api: ServerAPI) -> None:
    api.db.write(lambda conn: add_flavor(conn, "p", "private", 64, is_public=False))

    answer = api.call("POST", "/servers", create_body(flavorRef="p"))

    assert answer.json["badRequest"]["message"] == "Flavor p could not be found."


def test_another_projects_group_does_not_exist(api: ServerAPI) -> None:
    group = api.db.write(lambda conn: add_group(conn, api.project["bob"]))

    answer = api.call("POST", "/servers", create_body(hints={"group": group}))

    assert answer.status_code == 400
    assert f"Instance group {group} could not be found." == answer.json["badRequest"]["message"]


def test_group_members_are_limited(make_api: Callable[..., ServerAPI]) -> None:
    api = make_api(quota__server_group_members=2)
    group = api.db.write(lambda conn: add_group(conn, api.project["alice"]))
    api.create(hints={"group": group}, min_count=2)

    answer = api.call("POST", "/servers", create_body(hints={"group": group}))

    assert answer.status_code == 403
    assert "server_group_members" in answer.json["forbidden"]["message"]
    assert api.count(models.instances) == 2


def test_metadata_items_are_limited(make_api: Callable[..., ServerAPI]) -> None:
    api = make_api(quota__metadata_items=1)

    assert api.call("POST", "/servers", create_body(metadata={"a": "1", "b": "2"})).status_code == 403
    assert _nothing_stored(api)


@pytest.mark.parametrize("fields", [{"availability_zone": "nova:host1"}, {"host": "host1"}])
def test_naming_a_host_is_for_administrators(api: ServerAPI, fields: dict[str, str]) -> None:
    assert api.call("POST", "/servers", create_body(**fields)).status_code == 403
    assert _nothing_stored(api)


def test_an_unknown_host_is_refused(api: ServerAPI) -> None:
    answer = api.call("POST", "/servers", create_body(host="nowhere"), "root")

    assert answer.json["badRequest"]["message"] == "Compute host nowhere could not be found."


def test_readers_cannot_create(api: ServerAPI) -> None:
    assert api.call("POST", "/servers", create_body(), "carol").status_code == 403
    assert _nothing_stored(api)

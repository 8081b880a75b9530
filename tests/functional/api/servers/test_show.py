# SPDX-License-Identifier: Apache-2.0
"""Single servers: who is shown what at which microversion, changing and deleting them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db import models
from tests.fixtures.server_api import IMAGE, ServerAPI, add_group

BASE = {
    "id", "name", "status", "tenant_id", "user_id", "metadata", "hostId", "image", "flavor", "created", "updated",
    "addresses", "accessIPv4", "accessIPv6", "links", "OS-DCF:diskConfig", "progress", "OS-EXT-AZ:availability_zone",
    "config_drive", "key_name", "OS-SRV-USG:launched_at", "OS-SRV-USG:terminated_at", "security_groups",
    "OS-EXT-STS:task_state", "OS-EXT-STS:vm_state", "OS-EXT-STS:power_state",
    "os-extended-volumes:volumes_attached",
}  # fmt: skip
SINCE = {
    "2.9": {"locked"},
    "2.19": {"description"},
    "2.26": {"tags"},
    "2.63": {"trusted_image_certificates"},
    "2.71": {"server_groups"},
    "2.73": {"locked_reason"},
    "2.90": {"OS-EXT-SRV-ATTR:hostname"},
    "2.96": {"pinned_availability_zone"},
    "2.100": {"scheduler_hints"},
}
_ATTRIBUTE = "OS-EXT-SRV-ATTR:"
ADMIN_SINCE = {
    "2.1": {_ATTRIBUTE + name for name in ("host", "hypervisor_hostname", "instance_name")},
    "2.3": {
        _ATTRIBUTE + name
        for name in (
            "hostname", "reservation_id", "launch_index", "kernel_id", "ramdisk_id", "root_device_name", "user_data",
        )
    },
    "2.16": {"host_status"},
}  # fmt: skip
VERSIONS = ["2.1", "2.2", "2.3", "2.8", "2.9", "2.16", "2.19", "2.26", "2.47", "2.63", "2.70", "2.71", "2.73", "2.90"]


def _at(since: dict[str, set[str]], version: str) -> set[str]:
    number = int(version[2:])
    return {name for start, names in since.items() if int(start[2:]) <= number for name in names}


@pytest.mark.parametrize("version", [*VERSIONS, "2.95", "2.96", "2.97", "2.99", "2.104"])
def test_each_version_shows_its_fields_and_no_others(api: ServerAPI, version: str) -> None:
    server_id = api.active()

    mine = api.call("GET", f"/servers/{server_id}", version=version).json["server"]
    listed = api.call("GET", "/servers/detail", version=version).json["servers"][0]
    admins = api.call("GET", f"/servers/{server_id}", user="root", version=version).json["server"]

    assert set(mine) == BASE | _at(SINCE, version)
    assert set(listed) == set(mine) - {"server_groups"}
    assert set(admins) == set(mine) | _at(ADMIN_SINCE, version)
    assert set(mine["flavor"]) == (
        {"id", "links"}
        if int(version[2:]) < 47
        else {"original_name", "vcpus", "ram", "disk", "ephemeral", "swap", "extra_specs"}
    )


def test_a_server_on_a_host(api: ServerAPI) -> None:
    server_id = api.active(metadata={"a": "b"})

    shown = api.call("GET", f"/servers/{server_id}", user="root").json["server"]

    assert (shown["status"], shown["metadata"]) == ("ACTIVE", {"a": "b"})
    assert shown["image"] == {
        "id": IMAGE,
        "links": [{"rel": "bookmark", "href": f"http://falconframework.org/images/{IMAGE}"}],
        "properties": {},
    }
    assert shown["hostId"] == hashlib.sha224(f"{api.project['alice']}host1".encode()).hexdigest()
    assert (shown["OS-EXT-SRV-ATTR:host"], shown["host_status"]) == ("host1", "UP")
    assert shown["OS-EXT-AZ:availability_zone"] == "nova"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"disabled": True}, "MAINTENANCE"),
        ({"forced_down": True}, "DOWN"),
        ({"last_seen_at": sa.text("'2000-01-01 00:00:00.000000'")}, "UNKNOWN"),
    ],
)
def test_host_status_follows_the_service(api: ServerAPI, change: dict[str, object], status: str) -> None:
    server_id = api.active()
    api.db.write(lambda conn: conn.execute(sa.update(models.services).values(**change)))

    assert api.call("GET", f"/servers/{server_id}", user="root").json["server"]["host_status"] == status


def test_a_fault_is_shown_with_its_details_to_administrators(api: ServerAPI) -> None:
    server_id = api.create()
    fault = {"fault_code": 500, "fault_message": "No valid host was found.", "fault_details": "why"}
    api.settle(server_id, "error", None, **fault, fault_at=sa.text("'2026-01-31 12:00:00.000000'"))

    mine = api.call("GET", f"/servers/{server_id}").json["server"]
    admins = api.call("GET", f"/servers/{server_id}", user="root").json["server"]

    assert mine["fault"] == {"code": 500, "created": "2026-01-31T12:00:00Z", "message": "No valid host was found."}
    assert admins["fault"]["details"] == "why"
    assert "progress" not in mine


def test_addresses_are_shown_short_and_long(api: ServerAPI) -> None:
    server_id = api.active()
    address = {
        "addr": "10.0.0.7",
        "version": 4,
        "OS-EXT-IPS:type": "fixed",
        "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01",
    }
    api.settle(server_id, addresses=json.dumps({"net": [address]}))
    short = {"net": [{"addr": "10.0.0.7", "version": 4}]}

    assert api.call("GET", f"/servers/{server_id}").json["server"]["addresses"] == {"net": [address]}
    assert api.call("GET", f"/servers/{server_id}/ips").json == {"addresses": short}
    assert api.call("GET", f"/servers/{server_id}/ips/net").json == short
    assert api.call("GET", f"/servers/{server_id}/ips/other").status_code == 404


@pytest.mark.parametrize("name", ["s1", "22222222-2222-4222-8222-222222222222", "%00", "a" * 300, "%ff%fe"])
def test_what_is_no_servers_id_is_not_found(api: ServerAPI, name: str) -> None:
    api.create()

    for method in ("GET", "DELETE"):
        answer = api.call(method, f"/servers/{name}")
        assert answer.status_code == 404
        assert "could not be found" in answer.json["itemNotFound"]["message"]


def test_another_projects_server_is_not_found(api: ServerAPI) -> None:
    server_id = api.active()

    assert api.call("GET", f"/servers/{server_id}", user="bob").status_code == 404
    assert api.call("DELETE", f"/servers/{server_id}", user="bob").status_code == 404
    assert api.call("PUT", f"/servers/{server_id}", {"server": {"name": "x"}}, user="bob").status_code == 404
    assert api.call("POST", f"/servers/{server_id}/action", {"os-stop": None}, user="bob").status_code == 404
    assert len(api.conductor.hints) == 1


def test_changing_a_server(api: ServerAPI) -> None:
    server_id = api.active()
    change = {
        "name": "new",
        "description": None,
        "hostname": "guest",
        "accessIPv4": "192.0.2.1",
        "accessIPv6": "2001:0db8:0:0::0001",
        "OS-DCF:diskConfig": "AUTO",
    }

    shown = api.call("PUT", f"/servers/{server_id}", {"server": change}).json["server"]

    # However it is written, an address is shown in its shortest form.
    change["accessIPv6"] = "2001:db8::1"
    assert {name: shown[name] for name in change if name != "hostname"} == {
        name: value for name, value in change.items() if name != "hostname"
    }
    assert shown["OS-EXT-SRV-ATTR:hostname"] == "guest"
    assert set(shown) == set(api.call("GET", f"/servers/{server_id}").json["server"])


def test_a_change_is_shown_with_fewer_fields_below_2_75(api: ServerAPI) -> None:
    server_id = api.active()

    shown = api.call("PUT", f"/servers/{server_id}", {"server": {}}, user="root", version="2.74").json["server"]

    assert not [name for name in shown if name.startswith(("OS-EXT", "OS-SRV"))]
    assert not {"key_name", "config_drive", "host_status", "security_groups"} & set(shown)
    assert {"tags", "server_groups", "locked_reason"} <= set(shown)


@pytest.mark.parametrize(
    "change", [{"name": ""}, {"name": 5}, {"colour": "x"}, {"accessIPv4": "x"}, {"description": "x" * 256}]
)
def test_bad_changes_are_refused(api: ServerAPI, change: dict[str, object]) -> None:
    server_id = api.active()

    assert api.call("PUT", f"/servers/{server_id}", {"server": change}).status_code == 400
    assert api.call("GET", f"/servers/{server_id}").json["server"]["name"] == "s1"


def test_deleting_ends_whatever_else_was_going_on(api: ServerAPI) -> None:
    server_id = api.create()

    answer = api.call("DELETE", f"/servers/{server_id}")

    assert (answer.status_code, answer.text) == (204, "")
    operations = api.db.read(lambda conn: conn.execute(sa.select(models.operations)).all())
    assert [(o.kind, o.status) for o in operations] == [("create", "cancelled"), ("delete", "active")]
    assert api.conductor.hints[-1] == [operations[-1].uuid]
    assert api.call("GET", f"/servers/{server_id}").json["server"]["OS-EXT-STS:task_state"] == "deleting"


def test_deleting_again_hints_at_the_same_operation(api: ServerAPI) -> None:
    server_id = api.create()
    for _ in range(3):
        assert api.call("DELETE", f"/servers/{server_id}").status_code == 204

    assert api.conductor.hints[1] == api.conductor.hints[2] == api.conductor.hints[3]
    assert api.count(models.operations) == 2


def test_a_deleted_server_is_gone_but_for_its_history(api: ServerAPI) -> None:
    server_id = api.create()
    api.settle(server_id, "deleted", deleted=7)

    assert api.call("GET", f"/servers/{server_id}").status_code == 404
    assert api.call("DELETE", f"/servers/{server_id}").status_code == 404
    assert api.call("GET", f"/servers/{server_id}/os-instance-actions").status_code == 200
    assert api.call("GET", f"/servers/{server_id}/os-instance-actions", version="2.20").status_code == 404


def test_the_group_is_named(api: ServerAPI) -> None:
    group = api.db.write(lambda conn: add_group(conn, api.project["alice"]))
    server_id = api.create(hints={"group": group})

    assert api.call("GET", f"/servers/{server_id}").json["server"]["server_groups"] == [group]


def test_nothing_is_attached(api: ServerAPI) -> None:
    server_id = api.active()

    assert api.call("GET", f"/servers/{server_id}/os-volume_attachments").json == {"volumeAttachments": []}
    assert api.call("GET", f"/servers/{server_id}/os-interface").json == {"interfaceAttachments": []}


def test_the_image_is_shown_with_properties_that_are_more_than_words_from_2_98_on(api: ServerAPI) -> None:
    properties = {"hw_disk_bus": "scsi", "os_distro": "debian", "architecture": "x86_64", "owner_specified.a-b": "c"}
    api.db.write(lambda conn: conn.execute(sa.update(models.images).values(properties=json.dumps(properties))))
    server_id = api.active()

    for path in ("", "/detail"):
        shown = api.call("GET", f"/servers/{server_id}" if not path else "/servers/detail", version="2.98").json
        image = (shown["server"] if not path else shown["servers"][0])["image"]
        assert image["properties"] == {"hw_disk_bus": "scsi", "os_distro": "debian", "architecture": "x86_64"}
    changed = api.call("PUT", f"/servers/{server_id}", {"server": {}}, version="2.98").json["server"]
    assert "properties" in changed["image"]
    assert "properties" not in api.call("GET", f"/servers/{server_id}", version="2.97").json["server"]["image"]


def test_hints_are_shown_as_they_were_given_from_2_100_on(api: ServerAPI) -> None:
    others = [api.active(), api.active()]
    hints = {"different_host": others, "query": "[]", "build_near_host_ip": "192.0.2.1"}
    server_id = api.create(hints=hints)

    for version, shown in (("2.99", None), ("2.100", hints)):
        answer = api.call("GET", f"/servers/{server_id}", version=version).json["server"]
        assert answer.get("scheduler_hints") == shown
    assert api.call("GET", f"/servers/{others[0]}", version="2.100").json["server"]["scheduler_hints"] == {}


def test_a_server_is_pinned_to_its_zone_and_unpinned_from_2_104_on(api: ServerAPI) -> None:
    server_id = api.create(availability_zone="nova")
    api.settle(server_id)

    def pin(zone: str | None, version: str = "2.104", status: int = 200) -> Any:
        body = {"server": {"pinned_availability_zone": zone}}
        answer = api.call("PUT", f"/servers/{server_id}", body, version=version)
        assert answer.status_code == status, answer.text
        shown = api.call("GET", f"/servers/{server_id}", version="2.96").json["server"]
        return shown["pinned_availability_zone"]

    assert pin("nova") == "nova"
    assert pin("other", status=409) == "nova"
    assert pin(None) is None
    assert pin(None) is None
    assert pin("other", status=409) is None
    assert pin("", status=400) is None
    assert pin("nova", "2.103", 400) is None
    assert pin("nova") == "nova"


def test_a_server_that_is_nowhere_cannot_be_pinned(api: ServerAPI) -> None:
    server_id = api.create()

    answer = api.call("PUT", f"/servers/{server_id}", {"server": {"pinned_availability_zone": "nova"}}, version="2.104")

    assert answer.status_code == 409


@pytest.mark.parametrize("what", ["shares", "os-volume_attachments"])
def test_nothing_can_be_attached_from_services_that_are_not_there(api: ServerAPI, what: str) -> None:
    path, version = f"/servers/{api.active()}/{what}", "2.97"
    key = {"shares": "shares", "os-volume_attachments": "volumeAttachments"}[what]

    assert api.call("GET", path, user="carol", version=version).json == {key: []}
    refused = api.call("POST", path, {"share": {"share_id": IMAGE}}, version=version)
    assert (refused.status_code, "there is no" in refused.text) == (501, True)
    assert api.call("POST", path, {}, user="carol", version=version).status_code == 403
    for method in ("GET", "DELETE"):
        assert api.call(method, f"{path}/{IMAGE}", version=version).status_code == 404
    if what == "shares":
        assert api.call("GET", path, version="2.96").status_code == 404

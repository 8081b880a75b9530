# SPDX-License-Identifier: Apache-2.0
"""Shelving and unshelving: what each microversion may say, and where a server may be sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db import images, instances, models, operations, registry
from tests.fixtures.server_api import IMAGE, ServerAPI, add_image

KEPT = "33333333-3333-4333-8333-333333333333"


def _act(api: ServerAPI, server_id: str, action: dict[str, Any], user: str = "root", version: str = "2.96") -> Any:
    return api.call("POST", f"/servers/{server_id}/action", action, user, version)


def _offloaded(api: ServerAPI, **values: Any) -> str:
    """Make a server that is an image alone; return its id."""
    server_id = api.create()
    kept = json.dumps({"id": KEPT, "disk_format": "qcow2"})
    api.settle(server_id, "shelved_offloaded", None, shelved_image=kept, **values)
    return server_id


def _last(api: ServerAPI) -> operations.Operation:
    found = api.db.read(lambda conn: operations.get(conn, api.conductor.hints[-1][0]))
    assert found is not None
    return found


def _zone(api: ServerAPI, name: str, host: str) -> None:
    def unit(conn: sa.Connection) -> None:
        registry.register_service(conn, registry.COMPUTE, host, f"compute-of-{host}")
        made = {"uuid": f"{name:0>36}"[:36], "name": name, "metadata": json.dumps({"availability_zone": name})}
        key = conn.execute(sa.insert(models.aggregates).values(**made)).inserted_primary_key
        assert key is not None
        conn.execute(sa.insert(models.aggregate_hosts).values(aggregate_id=key[0], host=host))

    api.db.write(unit)


def test_shelving_makes_the_image_that_the_server_will_be(api: ServerAPI) -> None:
    server_id = api.active(name="x" * 255)

    assert _act(api, server_id, {"shelve": None}, "alice").status_code == 202

    operation = _last(api)
    image = api.db.read(lambda conn: images.get(conn, operation.arguments["image_id"]))
    assert (image.name, image.status) == ("x" * 247 + "-shelved", "queued")
    assert image.properties["base_image_ref"] == IMAGE
    assert operation.arguments["was"] == "active"


def test_a_shelved_server_is_started_where_it_is(api: ServerAPI) -> None:
    server_id = api.create()
    api.settle(server_id, "shelved", shelved_image=json.dumps({"id": KEPT}))

    assert _act(api, server_id, {"unshelve": None}).status_code == 202

    assert _last(api).arguments == {"offloaded": False, "host": None, "image": {"id": KEPT}}
    api.settle(server_id, "shelved")
    for place in ({"availability_zone": "nova"}, {"host": "host1"}):
        answer = _act(api, server_id, {"unshelve": place})
        assert (answer.status_code, "must be shelved_offloaded" in answer.text) == (409, True)


def test_an_offloaded_server_can_go_to_a_zone_or_a_host(api: ServerAPI) -> None:
    _zone(api, "east", "host-e")
    server_id = _offloaded(api, requested_zone="nova")

    def unshelve(place: dict[str, Any] | None, version: str = "2.96") -> tuple[int, str | None, str | None]:
        api.settle(server_id, "shelved_offloaded", None)
        answer = _act(api, server_id, {"unshelve": place}, version=version)
        row = api.db.read(lambda conn: instances.get(conn, server_id))
        return answer.status_code, row.requested_zone, _last(api).arguments["host"]

    assert unshelve(None) == (202, "nova", None)
    assert unshelve({"availability_zone": "east"}, "2.77") == (202, "east", None)
    assert unshelve({"host": "host-e"}) == (202, "east", "host-e")
    assert unshelve({"host": "host1"})[0] == 409
    assert unshelve({"host": "host1", "availability_zone": "nova"}) == (202, "nova", "host1")
    assert unshelve({"availability_zone": None}) == (202, None, None)
    assert unshelve({"host": "host-e"}) == (202, None, "host-e")
    assert unshelve({"availability_zone": "north"})[0] == 400
    assert unshelve({"host": "nowhere"})[0] == 400


def test_only_administrators_name_a_host(api: ServerAPI) -> None:
    server_id = _offloaded(api)

    assert _act(api, server_id, {"unshelve": {"host": "host1"}}, "alice").status_code == 403
    assert _act(api, server_id, {"unshelve": None}, "alice").status_code == 202


@pytest.mark.parametrize(
    ("version", "value", "status"),
    [
        ("2.1", {"anything": "goes"}, 202),
        ("2.76", {"availability_zone": "ignored"}, 202),
        ("2.77", None, 202),
        ("2.77", {}, 400),
        ("2.77", {"availability_zone": None}, 400),
        ("2.77", {"availability_zone": "nova", "host": "host1"}, 400),
        ("2.90", {"host": "host1"}, 400),
        ("2.91", {"availability_zone": None}, 202),
        ("2.91", {"host": "host1"}, 202),
        ("2.91", {}, 400),
        ("2.91", {"host": None}, 400),
        ("2.91", {"host": "host1", "colour": "red"}, 400),
    ],
)
def test_what_unshelve_may_say(api: ServerAPI, version: str, value: Any, status: int) -> None:
    server_id = _offloaded(api)

    assert _act(api, server_id, {"unshelve": value}, version=version).status_code == status


def test_what_is_written_of_a_server_that_is_an_image(api: ServerAPI) -> None:
    server_id = _offloaded(api)

    shown = api.call("GET", f"/servers/{server_id}", user="root").json["server"]

    assert (shown["status"], shown["OS-EXT-SRV-ATTR:host"], shown["hostId"]) == ("SHELVED_OFFLOADED", None, "")
    assert _act(api, server_id, {"os-start": None}).status_code == 409
    assert _act(api, server_id, {"os-getConsoleOutput": {}}).status_code == 409


def test_deleting_a_server_deletes_the_image_that_it_is(api: ServerAPI) -> None:
    api.db.write(lambda conn: add_image(conn, KEPT, "kept"))
    server_id = _offloaded(api)

    assert api.call("DELETE", f"/servers/{server_id}").status_code == 204

    assert not api.db.read(lambda conn: images.exists(conn, KEPT))

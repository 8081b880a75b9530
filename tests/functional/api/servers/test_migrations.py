# SPDX-License-Identifier: Apache-2.0
"""Moves as they are listed, and the live migration of a server, looked at and ended."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db import models
from tests.fixtures.server_api import ServerAPI, add_flavor

_PINNED = '{"flavorid": "%s", "name": "m", "vcpus": 1, "memory_mb": 512, "root_gb": 1}'
_FIRST = datetime.datetime(2026, 1, 31, 12, 0, 0)
_PROGRESS = {
    "memory_total_bytes": 100,
    "memory_processed_bytes": 60,
    "memory_remaining_bytes": 40,
    "disk_total_bytes": 9,
    "disk_processed_bytes": 7,
    "disk_remaining_bytes": 2,
}


def _add(api: ServerAPI, server_id: str, number: int, **values: Any) -> str:
    """Write a move that began so many hours after noon; return its uuid."""
    at = _FIRST + datetime.timedelta(hours=number)
    row = {
        "uuid": str(uuid.uuid4()),
        "instance_uuid": server_id,
        "operation_uuid": str(uuid.uuid4()),
        "type": "live-migration",
        "status": "running",
        "open": True,
        "source_compute": "host1",
        "source_node": "node1",
        "source_node_id": 1,
        "old_flavor": _PINNED % "1",
        "new_flavor": _PINNED % "1",
        "old_vm_state": "active",
        "project_id": "p",
        "user_id": "u",
        "created_at": at,
        "updated_at": at,
        **values,
    }
    api.db.write(lambda conn: conn.execute(sa.insert(models.migrations).values(**row)))
    return str(row["uuid"])


def _listed(api: ServerAPI, query: str = "", version: str = "2.96") -> list[dict[str, Any]]:
    answer = api.call("GET", f"/os-migrations?{query}", user="root", version=version)
    assert answer.status_code == 200, answer.text
    return list(answer.json["migrations"])


@pytest.fixture
def three(api: ServerAPI) -> tuple[str, str, str]:
    """The uuids of a resize that is done, an evacuation that is done, and a live migration that runs."""
    one, two = api.active(), api.active()
    api.db.write(lambda conn: add_flavor(conn, "big", "m1.big", 1024))
    resize = _add(api, one, 1, type="resize", status="confirmed", open=False, new_flavor=_PINNED % "big")
    evacuation = _add(api, two, 2, type="evacuation", status="done", source_compute="dead", dest_compute="host1")
    live = _add(api, one, 3, dest_compute="host2", dest_host="10.0.0.2", dest_node="node2", user_id="w", **_PROGRESS)
    return resize, evacuation, live


# -- the list of all

_OLD_KEYS = {
    *("created_at", "updated_at", "dest_compute", "dest_host", "dest_node", "id", "instance_uuid", "status"),
    *("new_instance_type_id", "old_instance_type_id", "source_compute", "source_node"),
}


@pytest.mark.parametrize(
    ("version", "more"),
    [
        ("2.1", set()),
        ("2.22", set()),
        ("2.23", {"migration_type"}),
        ("2.58", {"migration_type"}),
        ("2.59", {"migration_type", "uuid"}),
        ("2.79", {"migration_type", "uuid"}),
        ("2.80", {"migration_type", "uuid", "user_id", "project_id"}),
    ],
)
def test_what_is_listed_of_a_move(api: ServerAPI, three: tuple[str, str, str], version: str, more: set[str]) -> None:
    shown = {(migration["status"]): migration for migration in _listed(api, version=version)}

    assert set(shown["confirmed"]) == set(shown["done"]) == _OLD_KEYS | more
    assert set(shown["running"]) == _OLD_KEYS | more | ({"links"} if more else set())
    assert shown["confirmed"]["created_at"] == "2026-01-31T13:00:00.000000"


def test_a_live_migration_under_way_is_linked_to(api: ServerAPI, three: tuple[str, str, str]) -> None:
    (shown,) = _listed(api, "migration_type=live-migration")

    links = {link["rel"]: link["href"] for link in shown["links"]}
    path = f"/servers/{shown['instance_uuid']}/migrations/{shown['id']}"
    assert (links["self"][-len(path) - 5 :], links["bookmark"][-len(path) :]) == (f"/v2.1{path}", path)
    assert api.call("GET", path, user="root").json["migration"]["uuid"] == three[2]
    assert (shown["dest_compute"], shown["dest_host"], shown["dest_node"]) == ("host2", "10.0.0.2", "node2")
    _add(api, shown["instance_uuid"], 4, type="migration", status="preparing")
    assert "links" not in _listed(api, "migration_type=migration")[0]


def test_flavors_are_shown_by_number_while_they_are_there(api: ServerAPI, three: tuple[str, str, str]) -> None:
    ids = {
        row.flavorid: row.id for row in api.db.read(lambda conn: list(conn.execute(sa.select(models.flavors)).all()))
    }

    def shown() -> tuple[int | None, int | None]:
        (move,) = _listed(api, "migration_type=resize")
        return move["old_instance_type_id"], move["new_instance_type_id"]

    assert shown() == (ids["1"], ids["big"])
    api.db.write(lambda conn: conn.execute(sa.delete(models.flavors).where(models.flavors.c.flavorid == "big")))
    assert shown() == (ids["1"], None)


@pytest.mark.parametrize(
    ("query", "version", "found"),
    [
        ("", "2.96", [2, 1, 0]),
        ("", "2.58", [0, 1, 2]),
        ("status=done", "2.1", [1]),
        ("status=done", "2.96", [1]),
        ("host=host1", "2.96", [2, 1, 0]),
        ("host=host2", "2.96", [2]),
        ("source_compute=dead", "2.96", [1]),
        ("source_compute=host2", "2.96", []),
        ("migration_type=resize", "2.96", [0]),
        ("migration_type=resize", "2.1", [0]),
        ("migration_type=resize&status=done", "2.96", []),
        ("hidden=false", "2.96", [2, 1, 0]),
        ("hidden=1", "2.96", []),
        ("user_id=w", "2.80", [2]),
        ("project_id=q", "2.80", []),
        ("project_id=q", "2.58", [0, 1, 2]),
        ("changes-since=2026-01-31T14:00:00Z", "2.59", [2, 1]),
        ("changes-since=2026-01-31T14:00:00Z", "2.58", [0, 1, 2]),
        ("changes-before=2026-01-31T14:00:00Z", "2.66", [1, 0]),
        ("changes-since=2026-01-31T14:00:00Z&changes-before=2026-01-31T14:00:00Z", "2.66", [1]),
        ("limit=1", "2.59", [2]),
        ("limit=0", "2.59", []),
        ("limit=1&colour=blue", "2.58", [0, 1, 2]),
    ],
)
def test_filters(api: ServerAPI, three: tuple[str, str, str], query: str, version: str, found: list[int]) -> None:
    by_id = {row.id: row.uuid for row in api.db.read(lambda conn: list(conn.execute(sa.select(models.migrations))))}

    assert [by_id[move["id"]] for move in _listed(api, query, version)] == [three[place] for place in found]


def test_one_servers_moves(api: ServerAPI, three: tuple[str, str, str]) -> None:
    server_id = _listed(api, "migration_type=resize")[0]["instance_uuid"]

    assert [move["uuid"] for move in _listed(api, f"instance_uuid={server_id}")] == [three[2], three[0]]


@pytest.mark.parametrize(
    ("version", "query"),
    [
        ("2.59", "limit=x"),
        ("2.59", "limit=-1"),
        ("2.59", "limit=1&limit=2"),
        ("2.59", "marker=22222222-2222-4222-8222-222222222222"),
        ("2.59", "changes-since=yesterday"),
        ("2.59", "colour=blue"),
        ("2.65", "changes-before=2026-01-01T00:00:00Z"),
        ("2.66", "changes-since=2026-01-02T00:00:00Z&changes-before=2026-01-01T00:00:00Z"),
        ("2.79", "user_id=u"),
        ("2.79", "project_id=p"),
        ("2.96", "status=" + "x" * 256),
    ],
)
def test_queries_that_make_no_sense_are_refused(
    api: ServerAPI, three: tuple[str, str, str], version: str, query: str
) -> None:
    answer = api.call("GET", f"/os-migrations?{query}", user="root", version=version)

    assert answer.status_code == 400
    assert answer.json["badRequest"]["message"]


@pytest.mark.parametrize("query", ["limit=1", "limit=2", "limit=1&host=host1"])
def test_pages_follow_each_other(api: ServerAPI, three: tuple[str, str, str], query: str) -> None:
    """Of moves that began at one moment, too."""
    server_id = _listed(api)[0]["instance_uuid"]
    later = [_add(api, server_id, 3, type="migration") for _ in range(2)]
    found: list[str] = []
    path = f"/os-migrations?{query}"
    while path and len(found) < 10:
        answer = api.call("GET", path, user="root").json
        found += [move["uuid"] for move in answer["migrations"]]
        links = answer.get("migrations_links", [])
        path = links[0]["href"].split("/v2.1", 1)[1] if links else ""

    assert found == [later[1], later[0], three[2], three[1], three[0]]


def test_below_259_there_are_no_pages(api: ServerAPI, three: tuple[str, str, str]) -> None:
    answer = api.call("GET", "/os-migrations?limit=1", user="root", version="2.58").json

    assert set(answer) == {"migrations"}
    assert len(answer["migrations"]) == 3


def test_a_long_list_costs_as_many_statements_as_a_short_one(api: ServerAPI, three: tuple[str, str, str]) -> None:
    server_id = _listed(api)[0]["instance_uuid"]
    with api.statements() as of_one:
        assert len(_listed(api, "limit=1")) == 1
    for _ in range(50):
        _add(api, server_id, 4)
    with api.statements() as of_many:
        assert len(_listed(api)) == 53

    assert len(of_many) == len(of_one) == 2


def test_the_list_is_for_administrators(api: ServerAPI) -> None:
    assert api.call("GET", "/os-migrations").status_code == 403
    assert api.call("GET", "/os-migrations", user="carol").status_code == 403


# -- a server's live migration


@pytest.mark.parametrize("status", ["queued", "preparing", "running", "post-migrating"])
def test_a_servers_live_migration_is_shown_while_it_is_under_way(api: ServerAPI, status: str) -> None:
    server_id, other = api.active(), api.active()
    mine = _add(api, server_id, 1, status=status)
    _add(api, server_id, 2, status="completed")
    _add(api, server_id, 3, type="resize", status="preparing")
    _add(api, other, 4)

    (shown,) = api.call("GET", f"/servers/{server_id}/migrations", user="root").json["migrations"]

    assert (shown["uuid"], shown["status"]) == (mine, status)
    one = api.call("GET", f"/servers/{server_id}/migrations/{shown['id']}", user="root").json
    assert one == {"migration": shown}


@pytest.mark.parametrize(
    ("version", "more"), [("2.23", set()), ("2.58", set()), ("2.59", {"uuid"}), ("2.80", {"uuid", "user_id"})]
)
def test_what_is_shown_of_a_live_migration(api: ServerAPI, version: str, more: set[str]) -> None:
    server_id = api.active()
    _add(api, server_id, 1, **_PROGRESS)

    (shown,) = api.call("GET", f"/servers/{server_id}/migrations", user="root", version=version).json["migrations"]

    assert set(shown) == {
        *("created_at", "updated_at", "dest_compute", "dest_host", "dest_node", "id", "server_uuid", "status"),
        *("source_compute", "source_node", *_PROGRESS, *more, *(["project_id"] if "user_id" in more else [])),
    }
    assert shown["server_uuid"] == server_id
    assert {name: shown[name] for name in _PROGRESS} == _PROGRESS


@pytest.mark.parametrize(
    ("number", "values", "words"),
    [
        ("1", {"type": "resize"}, "is not live-migration"),
        ("1", {"status": "completed"}, "is not in progress"),
        ("1", {"status": "accepted"}, "is not in progress"),
        ("2", {}, "Migration 2 could not be found"),
        ("x", {}, "Migration x could not be found"),
        ("9" * 30, {}, "could not be found"),
    ],
)
def test_what_is_no_live_migration_under_way_is_not_there(
    api: ServerAPI, number: str, values: dict[str, Any], words: str
) -> None:
    server_id = api.active()
    _add(api, server_id, 1, **values)

    answer = api.call("GET", f"/servers/{server_id}/migrations/{number}", user="root")

    assert answer.status_code == 404
    assert words in answer.json["itemNotFound"]["message"]


def test_anothers_live_migration_is_not_there(api: ServerAPI) -> None:
    server_id, other = api.active(), api.active()
    _add(api, other, 1)
    path = f"/servers/{server_id}/migrations/1"

    assert api.call("GET", path, user="root").status_code == 404
    assert api.call("DELETE", path, user="root").status_code == 404
    assert api.call("POST", f"{path}/action", {"force_complete": None}, "root").status_code == 404
    assert _wish(api) == ""


def _wish(api: ServerAPI) -> str:
    return str(api.db.read(lambda conn: conn.scalar(sa.select(models.migrations.c.wish))))


@pytest.mark.parametrize(
    ("method", "path", "body", "oldest"),
    [
        ("POST", "/1/action", {"force_complete": None}, 22),
        ("GET", "", None, 23),
        ("GET", "/1", None, 23),
        ("DELETE", "/1", None, 24),
    ],
)
def test_calls_by_version(api: ServerAPI, method: str, path: str, body: Any, oldest: int) -> None:
    server_id = api.active()
    _add(api, server_id, 1)
    whole = f"/servers/{server_id}/migrations{path}"

    assert api.call(method, whole, body, "root", f"2.{oldest - 1}").status_code == 404
    assert _wish(api) == ""
    assert api.call(method, whole, body, "root", f"2.{oldest}").status_code in (200, 202)


@pytest.mark.parametrize(
    ("status", "version", "code"),
    [
        ("running", "2.24", 202),
        ("running", "2.96", 202),
        ("preparing", "2.64", 400),
        ("preparing", "2.65", 202),
        ("queued", "2.64", 400),
        ("queued", "2.65", 202),
        ("completed", "2.96", 400),
        ("error", "2.64", 400),
    ],
)
def test_aborting(api: ServerAPI, status: str, version: str, code: int) -> None:
    server_id = api.active()
    _add(api, server_id, 1, status=status)

    answer = api.call("DELETE", f"/servers/{server_id}/migrations/1", user="root", version=version)

    assert answer.status_code == code
    assert _wish(api) == ("abort" if code == 202 else "")
    assert (answer.content == b"") is (code == 202)


@pytest.mark.parametrize(("status", "code"), [("running", 202), ("preparing", 400), ("completed", 400)])
def test_forcing_to_complete(api: ServerAPI, status: str, code: int) -> None:
    server_id = api.active()
    _add(api, server_id, 1, status=status)

    answer = api.call("POST", f"/servers/{server_id}/migrations/1/action", {"force_complete": None}, "root")

    assert answer.status_code == code
    assert _wish(api) == ("force-complete" if code == 202 else "")


@pytest.mark.parametrize("body", [{}, {"force_complete": {}}, {"pause": None}, {"force_complete": None, "x": 1}, []])
def test_bad_bodies_are_refused(api: ServerAPI, body: Any) -> None:
    server_id = api.active()
    _add(api, server_id, 1)

    assert api.call("POST", f"/servers/{server_id}/migrations/1/action", body, "root").status_code == 400
    assert _wish(api) == ""


@pytest.mark.parametrize(("user", "code"), [("alice", 403), ("carol", 403), ("bob", 404)])
def test_live_migrations_are_for_administrators(api: ServerAPI, user: str, code: int) -> None:
    server_id = api.active()
    _add(api, server_id, 1)
    path = f"/servers/{server_id}/migrations"

    assert api.call("GET", path, user=user).status_code == code
    assert api.call("GET", f"{path}/1", user=user).status_code == code
    assert api.call("DELETE", f"{path}/1", user=user).status_code == code
    assert api.call("POST", f"{path}/1/action", {"force_complete": None}, user).status_code == code
    assert _wish(api) == ""

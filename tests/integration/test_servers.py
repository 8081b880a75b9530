# SPDX-License-Identifier: Apache-2.0
"""The servers noun on MariaDB and PostgreSQL: requests as on SQLite, and the races that SQLite's one writer hides."""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nova_lite.db import models
from tests.fixtures.server_api import ServerAPI, add_group, create_body, write_users
from tests.integration.conftest import DatabaseServer


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("users")
    write_users(directory)
    return directory


@pytest.fixture
def api(users: Path, tmp_path: Path, database_server: DatabaseServer) -> Iterator[ServerAPI]:
    url = database_server.url(database_server.create_database())
    api = ServerAPI(users, tmp_path, database__connection=url, quota__cores=-1, quota__ram=-1)
    yield api
    api.close()


def _at_once(count: int, work: Callable[[int], object]) -> None:
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_twenty_creates_at_once_with_a_quota_of_ten(api: ServerAPI) -> None:
    statuses: list[int] = []

    _at_once(20, lambda _: statuses.append(api.call("POST", "/servers", create_body()).status_code))

    assert sorted(statuses) == [202] * 10 + [403] * 10
    assert api.count(models.instances) == api.count(models.operations) == len(api.conductor.hints) == 10


def test_a_group_takes_no_more_members_than_it_may(api: ServerAPI) -> None:
    api.conf.set_override("server_group_members", 3, group="quota")
    group = api.db.write(lambda conn: add_group(conn, api.project["alice"]))
    statuses: list[int] = []

    def create(_: int) -> None:
        statuses.append(api.call("POST", "/servers", create_body(hints={"group": group})).status_code)

    _at_once(8, create)

    assert sorted(statuses) == [202] * 3 + [403] * 5


def test_of_two_actions_at_once_one_is_accepted(api: ServerAPI) -> None:
    server_id = api.active()
    statuses: list[int] = []

    def stop(_: int) -> None:
        statuses.append(api.call("POST", f"/servers/{server_id}/action", {"os-stop": None}).status_code)

    _at_once(6, stop)

    assert sorted(statuses) == [202] + [409] * 5
    assert api.count(models.operations) == 2


def test_concurrent_changes_of_metadata_and_tags_lose_nothing(api: ServerAPI) -> None:
    server_id = api.active()

    def add(number: int) -> None:
        api.call("POST", f"/servers/{server_id}/metadata", {"metadata": {f"k{number}": "v"}})
        api.call("PUT", f"/servers/{server_id}/tags/t{number}")

    _at_once(8, add)

    shown = api.call("GET", f"/servers/{server_id}").json["server"]
    assert shown["metadata"] == {f"k{number}": "v" for number in range(8)}
    assert shown["tags"] == [f"t{number}" for number in range(8)]


def test_deletes_at_once_share_one_operation(api: ServerAPI) -> None:
    server_id = api.active()

    _at_once(6, lambda _: api.call("DELETE", f"/servers/{server_id}"))

    assert api.count(models.operations) == 2
    assert len({hint[0] for hint in api.conductor.hints[1:]}) == 1


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name=a", ["a1", "a2"]),
        ("name=%5EA1%24", ["a1"]),
        ("name=%5E.*-%5B0-9%5D%2B%24", ["b-3"]),
        ("name=%25", []),
        ("name=a%5C%5C", []),
        ("name=_", []),
        ("status=ACTIVE", ["a1"]),
        ("status=SHUTOFF&status=BUILD", ["a2", "b-3"]),
        ("tags=x,y", ["a1"]),
        ("not-tags-any=x", ["b-3"]),
        ("locked=true", ["b-3"]),
        ("ip=%5E10.0.0.7%24", ["b-3"]),
        ("availability_zone=nova", ["a1", "b-3"]),
        ("changes-since=2000-01-01T00:00:00Z", ["a1", "a2", "b-3"]),
        ("sort_key=launched_at&sort_key=display_name", ["a1", "a2", "b-3"]),
        ("sort_key=launched_at&sort_dir=asc&sort_key=display_name", ["a1", "a2", "b-3"]),
    ],
)
def test_filters(api: ServerAPI, query: str, names: list[str]) -> None:
    api.settle(api.create(name="a1", tags=["x", "y"]), launched_at=datetime.datetime(2026, 1, 31))
    api.create(name="a2", tags=["x"])
    b3 = api.create(name="b-3")
    api.settle(b3, "stopped", "host2", addresses=json.dumps({"net": [{"addr": "10.0.0.7", "version": 4}]}))
    api.call("POST", f"/servers/{b3}/action", {"lock": None})

    found: list[str] = []
    path = f"/servers?limit=1&{query}"
    while path and len(found) < 10:
        answer = api.call("GET", path)
        assert answer.status_code == 200, answer.text
        found += [server["name"] for server in answer.json["servers"]]
        links = answer.json.get("servers_links", [])
        path = links[0]["href"].split("/v2.1", 1)[1] if links else ""

    assert sorted(found) == names


def test_names_that_differ_are_not_taken_for_one_another(api: ServerAPI) -> None:
    """MariaDB by itself takes "a" for "A" and "á", and any emoji for any other."""
    different = ["a", "A", "á", "😀", "😁"]
    server = api.create()
    api.settle(server)

    put = api.call("PUT", f"/servers/{server}/tags", {"tags": different})

    assert put.status_code == 200, put.text
    assert sorted(api.call("GET", f"/servers/{server}/tags").json["tags"]) == sorted(different)
    assert api.call("GET", f"/servers/{server}/tags/%C3%81").status_code == 404
    assert api.call("GET", "/servers?tags=B").json["servers"] == []


def test_a_tag_with_a_space_at_the_end_is_refused(api: ServerAPI) -> None:
    server = api.create()
    api.settle(server)

    assert api.call("PUT", f"/servers/{server}/tags", {"tags": ["a", "a "]}).status_code == 400
    assert api.call("PUT", f"/servers/{server}/tags/a%20").status_code == 400


def test_a_name_filter_does_not_mind_the_case(api: ServerAPI) -> None:
    api.create(name="Über-Server")

    for pattern in ("über", "SERVER", "s.rver", "ser%2Bver"):
        found = api.call("GET", f"/servers?name={pattern}").json["servers"]
        assert [server["name"] for server in found] == ["Über-Server"], pattern

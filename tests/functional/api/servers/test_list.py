# SPDX-License-Identifier: Apache-2.0
"""Lists of servers: every filter, every order, page by page, at a cost that does not grow with the page."""

from __future__ import annotations

import datetime
import json
import urllib.parse
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from nova_lite.db import models
from tests.fixtures.server_api import FLAVOR, IMAGE, ServerAPI, add_flavor


def _names(api: ServerAPI, query: str = "", user: str = "alice", version: str = "2.96") -> list[str]:
    answer = api.call("GET", f"/servers?{query}", user=user, version=version)
    assert answer.status_code == 200, answer.text
    return sorted(server["name"] for server in answer.json["servers"])


@pytest.fixture
def three(api: ServerAPI) -> ServerAPI:
    """a1 ACTIVE on host1 with tags x and y, a2 BUILD with tag x, b-3 SHUTOFF, locked, with an address."""
    a1 = api.create(name="a1", tags=["x", "y"], key_name=None, availability_zone=None)
    api.settle(a1, launched_at=datetime.datetime(2026, 1, 31, 12, 0, 0, 500000))
    api.create(name="a2", tags=["x"], user="alice")
    b3 = api.create(name="b-3", description="the third one")
    addresses = {"net": [{"addr": "10.0.0.7", "version": 4}, {"addr": "fe80::7", "version": 6}]}
    api.settle(b3, "stopped", "host2", power_state=4, addresses=json.dumps(addresses))
    api.call("POST", f"/servers/{b3}/action", {"lock": None})
    return api


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["a1", "a2", "b-3"]),
        ("name=a", ["a1", "a2"]),
        ("name=A1", ["a1"]),
        ("name=%5Ea", ["a1", "a2"]),
        ("name=%5Ea%24", []),
        ("name=%5E.*-%5B0-9%5D%2B%24", ["b-3"]),
        ("name=%5E.*%5C-3", ["b-3"]),
        ("name=a%25", []),
        ("name=a_", []),
        ("name=%27%3B%20DROP%20TABLE%20instances%3B--", []),
        ("status=ACTIVE", ["a1"]),
        ("status=shutoff&status=BUILD", ["a2", "b-3"]),
        ("status=REBOOT", []),
        ("flavor=" + FLAVOR, ["a1", "a2", "b-3"]),
        ("flavor=none", []),
        ("image=" + IMAGE, ["a1", "a2", "b-3"]),
        ("tags=x", ["a1", "a2"]),
        ("tags=x,y", ["a1"]),
        ("tags-any=y,z", ["a1"]),
        ("not-tags=x,y", ["a2", "b-3"]),
        ("not-tags-any=x", ["b-3"]),
        ("locked=true", ["b-3"]),
        ("locked=0", ["a1", "a2"]),
        ("ip=10.0", ["b-3"]),
        ("ip=%5E10.0.0.7%24", ["b-3"]),
        ("ip=0.0.0.7%24", ["b-3"]),
        ("ip=%5E0.0", []),
        ("ip6=fe80", ["b-3"]),
        ("vm_state=active", ["a1"]),
        ("task_state=scheduling", ["a2"]),
        ("task_state=", ["a1", "b-3"]),
        ("power_state=4", ["b-3"]),
        ("power_state=running", ["a1"]),
        ("availability_zone=nova", ["a1", "b-3"]),
        ("availability_zone=moon", []),
        ("launched_at=2026-01-31T12:00:00Z", ["a1"]),
        ("hostname=b-3", ["b-3"]),
        ("changes-since=2000-01-01T00:00:00Z", ["a1", "a2", "b-3"]),
        ("changes-before=2000-01-01T00:00:00Z", []),
        ("deleted=False", ["a1", "a2", "b-3"]),
        ("limit=0", []),
    ],
)
def test_filters(three: ServerAPI, query: str, names: list[str]) -> None:
    assert _names(three, query) == names


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("host=host1", ["a1"]),
        ("node=host2", ["b-3"]),
        ("description=third", ["b-3"]),
        ("locked_by=owner", ["b-3"]),
        ("deleted=True", []),
        ("uuid=nope", []),
    ],
)
def test_filters_of_administrators(three: ServerAPI, query: str, names: list[str]) -> None:
    assert _names(three, f"all_tenants=1&{query}", "root") == names
    assert _names(three, query, "alice") == ["a1", "a2", "b-3"], "others' are ignored"


@pytest.mark.parametrize(
    "query",
    [
        "status=NONSENSE",
        "limit=x",
        "limit=-1",
        "marker=22222222-2222-4222-8222-222222222222",
        "sort_key=colour",
        "sort_key=user_data",
        "sort_dir=sideways&sort_key=host",
        "colour=blue",
        "changes-since=yesterday",
        "changes-since=2026-01-02T00:00:00Z&changes-before=2026-01-01T00:00:00Z",
        "name=(a%2B)%2B%24",
        "name=%5B",
        "name=a*b*c*d*e*f",
        "name=" + "x" * 256,
        "name=%ff",
        "locked=perhaps",
        "ip=%25",
        "metadata=x",
        "power_state=9999999999999",
    ],
)
def test_queries_that_make_no_sense_are_refused(three: ServerAPI, query: str) -> None:
    answer = three.call("GET", f"/servers?{query}", user="root")

    assert answer.status_code == 400, answer.text
    assert answer.json["badRequest"]["message"]


def test_an_unknown_status_matches_nothing_below_2_38(three: ServerAPI) -> None:
    assert _names(three, "status=NONSENSE", version="2.37") == []


def test_unknown_parameters_are_ignored_below_2_75(three: ServerAPI) -> None:
    assert len(_names(three, "colour=blue", version="2.74")) == 3


def test_other_projects_see_nothing(three: ServerAPI) -> None:
    assert _names(three, user="bob") == []
    assert _names(three, f"project_id={three.project['alice']}", user="bob") == []
    assert three.call("GET", "/servers?all_tenants=1", user="bob").status_code == 403
    assert _names(three, f"all_tenants=1&project_id={three.project['alice']}", "root") == ["a1", "a2", "b-3"]
    assert _names(three, user="root") == []


def test_deleted_servers_are_for_administrators(three: ServerAPI) -> None:
    server_id = three.create(name="gone")
    three.settle(server_id, "deleted", deleted=7)

    assert _names(three, "name=gone") == []
    assert _names(three, "all_tenants=1&deleted=true", "root") == ["gone"]
    assert _names(three, "all_tenants=1&status=DELETED", "root") == ["gone"]
    assert three.call("GET", "/servers?status=DELETED").status_code == 403
    assert "gone" in _names(three, "changes-since=2000-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sort_key=display_name&sort_dir=asc", ["a1", "a2", "b-3"]),
        ("sort_key=display_name", ["b-3", "a2", "a1"]),
        ("sort_dir=asc", ["a1", "a2", "b-3"]),
        ("sort_key=launched_at&sort_dir=asc&sort_key=display_name&sort_dir=desc", ["b-3", "a2", "a1"]),
        ("sort_key=launched_at&sort_dir=desc&sort_key=display_name&sort_dir=asc", ["a1", "a2", "b-3"]),
        ("sort_key=progress", ["b-3", "a2", "a1"]),
    ],
)
def test_pages_follow_each_other_in_any_order(three: ServerAPI, query: str, expected: list[str]) -> None:
    found: list[str] = []
    path = f"/servers?limit=1&{query}"
    while path and len(found) < 10:
        answer = three.call("GET", path).json
        found += [server["name"] for server in answer["servers"]]
        links = answer.get("servers_links", [])
        path = links[0]["href"].split("/v2.1", 1)[1] if links else ""

    assert found == expected


def test_the_next_link_keeps_the_query(three: ServerAPI) -> None:
    link = three.call("GET", "/servers/detail?limit=2&status=active&status=build").json["servers_links"][0]["href"]

    query = urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)
    assert "/servers/detail?" in link
    assert (query["status"], query["limit"], len(query["marker"])) == (["active", "build"], ["2"], 1)


def test_zones_come_from_the_aggregates_of_the_hosts(three: ServerAPI) -> None:
    def unit(conn: sa.Connection) -> None:
        values = {"uuid": "a", "name": "z", "metadata": json.dumps({"availability_zone": "east"})}
        key = conn.execute(sa.insert(models.aggregates).values(**values)).inserted_primary_key
        conn.execute(sa.insert(models.aggregate_hosts).values(aggregate_id=key[0], host="host2"))

    three.db.write(unit)

    zones = {s["name"]: s["OS-EXT-AZ:availability_zone"] for s in three.call("GET", "/servers/detail").json["servers"]}
    assert zones == {"a1": "nova", "a2": "", "b-3": "east"}
    assert _names(three, "availability_zone=east") == ["b-3"]
    assert _names(three, "availability_zone=nova") == ["a1"]


@pytest.mark.parametrize("path", ["/servers", "/servers/detail"])
def test_a_page_of_a_thousand_costs_as_many_statements_as_a_page_of_one(
    make_api: Callable[..., ServerAPI], path: str
) -> None:
    api = make_api(quota__instances=-1, quota__cores=-1, quota__ram=-1)
    api.create("root", min_count=1000, tags=["x"], name="many")
    first = api.call("GET", "/servers?limit=1", user="root").json["servers"][0]["id"]

    with api.statements() as of_one:
        assert len(api.call("GET", f"{path}?limit=1&name=many", user="root").json["servers"]) == 1
    with api.statements() as of_thousand:
        assert len(api.call("GET", f"{path}?limit=1000&name=many&status=BUILD", user="root").json["servers"]) == 1000
    with api.statements() as of_rest:
        answer = api.call("GET", f"{path}?limit=1000&marker={first}", user="root")

    assert len(answer.json["servers"]) == 999
    assert len(of_thousand) == len(of_one) <= 4
    assert len(of_rest) == len(of_one) + 1


def test_a_page_has_at_most_the_configured_rows(make_api: Callable[..., ServerAPI]) -> None:
    api = make_api(api__max_limit=2)
    api.create(min_count=3)

    answer = api.call("GET", "/servers?limit=1000").json

    assert len(answer["servers"]) == 2
    assert answer["servers_links"]


def test_a_list_shows_the_flavor_as_it_was(api: ServerAPI) -> None:
    api.db.write(lambda conn: add_flavor(conn, "9", "m9", 128, extra_specs='{"hw:x": "1"}'))
    server_id = api.create(flavorRef="9")
    api.db.write(lambda conn: conn.execute(sa.delete(models.flavors)))

    shown = api.call("GET", f"/servers/{server_id}").json["server"]["flavor"]

    assert shown == {
        "original_name": "m9",
        "vcpus": 1,
        "ram": 128,
        "disk": 1,
        "ephemeral": 0,
        "swap": 0,
        "extra_specs": {"hw:x": "1"},
    }

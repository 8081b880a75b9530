# SPDX-License-Identifier: Apache-2.0
"""Flavors, extra specs and access lists."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures.whole_api import WholeAPI


def _create(api: WholeAPI, name: str, version: str = "2.96", **more: Any) -> dict[str, Any]:
    body = {"flavor": {"name": name, "id": name, "ram": 64, "vcpus": 1, "disk": 1, **more}}
    created: dict[str, Any] = api.good("POST", "/v2.1/flavors", body, version=version)["flavor"]
    return created


def _ids(api: WholeAPI, query: str = "", user: str = "root") -> list[str]:
    return [f["id"] for f in api.good("GET", f"/v2.1/flavors?{query}", user=user)["flavors"]]


def test_numbers_may_be_text(api: WholeAPI) -> None:
    flavor = _create(api, "a", ram="64", vcpus="2", disk="0", swap="128", rxtx_factor="2.5")

    assert (flavor["ram"], flavor["vcpus"], flavor["disk"], flavor["swap"]) == (64, 2, 0, 128)
    assert flavor["rxtx_factor"] == 2.5


def test_shape_changes_with_the_version(api: WholeAPI) -> None:
    _create(api, "a")

    shown = {
        v: api.good("GET", "/v2.1/flavors/a", version=v)["flavor"] for v in ("2.1", "2.54", "2.55", "2.61", "2.75")
    }

    assert "description" not in shown["2.54"]
    assert shown["2.55"]["description"] is None
    assert "extra_specs" not in shown["2.55"]
    assert shown["2.61"]["extra_specs"] == {}
    assert (shown["2.61"]["swap"], shown["2.75"]["swap"]) == ("", 0)


def test_name_and_id_are_unique(api: WholeAPI) -> None:
    _create(api, "a")

    for name, flavorid in (("a", "b"), ("b", "a")):
        body = {"flavor": {"name": name, "id": flavorid, "ram": 64, "vcpus": 1, "disk": 1}}
        assert api.ask("POST", "/v2.1/flavors", body).status_code == 409
    assert _ids(api) == ["a"]


def test_description_can_be_changed(api: WholeAPI) -> None:
    _create(api, "a")

    assert api.good("PUT", "/v2.1/flavors/a", {"flavor": {"description": "new"}})["flavor"]["description"] == "new"
    assert api.good("GET", "/v2.1/flavors/a")["flavor"]["description"] == "new"
    assert api.ask("PUT", "/v2.1/flavors/a", {"flavor": {"description": "x"}}, version="2.54").status_code == 404


def test_private_flavors_are_seen_by_those_who_may_use_them(api: WholeAPI) -> None:
    _create(api, "public")
    _create(api, "private", **{"os-flavor-access:is_public": False})
    assert _ids(api, user="alice") == ["public"]
    assert api.ask("GET", "/v2.1/flavors/private", user="alice").status_code == 404

    grant = {"addTenantAccess": {"tenant": api.project["blue"]}}
    access = api.good("POST", "/v2.1/flavors/private/action", grant)["flavor_access"]

    assert access == [{"flavor_id": "private", "tenant_id": api.project["blue"]}]
    assert _ids(api, user="alice") == ["private", "public"]
    assert _ids(api, user="bob") == ["public"]
    assert api.ask("POST", "/v2.1/flavors/private/action", grant).status_code == 409
    api.good("POST", "/v2.1/flavors/private/action", {"removeTenantAccess": {"tenant": api.project["blue"]}})
    assert _ids(api, user="alice") == ["public"]


def test_is_public_filter_is_the_administrators(api: WholeAPI) -> None:
    _create(api, "public")
    _create(api, "private", **{"os-flavor-access:is_public": False})

    assert _ids(api) == ["public"]
    assert _ids(api, "is_public=None") == ["private", "public"]
    assert _ids(api, "is_public=false") == ["private"]
    assert _ids(api, "is_public=None", user="alice") == ["public"]
    assert api.ask("GET", "/v2.1/flavors?is_public=x").status_code == 400


def test_access_of_public_flavors(api: WholeAPI) -> None:
    _create(api, "a")
    grant = {"addTenantAccess": {"tenant": "p"}}

    assert api.ask("GET", "/v2.1/flavors/a/os-flavor-access").status_code == 404
    assert api.ask("POST", "/v2.1/flavors/a/action", grant, version="2.7").status_code == 409
    assert api.ask("POST", "/v2.1/flavors/a/action", grant, version="2.6").status_code == 200


def test_pages_and_filters(api: WholeAPI) -> None:
    for number in range(5):
        _create(api, f"f{number}", ram=64 * (number + 1))

    first = api.good("GET", "/v2.1/flavors?limit=2&sort_key=memory_mb&sort_dir=desc")
    assert [f["id"] for f in first["flavors"]] == ["f4", "f3"]
    path = first["flavors_links"][0]["href"].split("/v2.1", 1)[1]
    assert [f["id"] for f in api.good("GET", f"/v2.1{path}")["flavors"]] == ["f2", "f1"]
    assert _ids(api, "minRam=200") == ["f3", "f4"]
    assert _ids(api, "limit=0") == []
    assert api.ask("GET", "/v2.1/flavors?marker=none").status_code == 400
    assert api.ask("GET", "/v2.1/flavors?sort_key=password").status_code == 400
    assert api.ask("GET", "/v2.1/flavors?minRam=x").status_code == 400


def test_extra_specs(api: WholeAPI) -> None:
    _create(api, "a")
    path = "/v2.1/flavors/a/os-extra_specs"

    api.good("POST", path, {"extra_specs": {"x:y": "1", "z": "2"}})
    assert api.good("PUT", f"{path}/z", {"z": "3"}) == {"z": "3"}
    assert api.good("GET", path) == {"extra_specs": {"x:y": "1", "z": "3"}}
    assert api.ask("PUT", f"{path}/z", {"other": "3"}).status_code == 400
    assert api.ask("PUT", f"{path}/z", {"z": "3", "other": "3"}).status_code == 400
    assert api.ask("POST", path, {"extra_specs": {"a/b": "1"}}).status_code == 400
    api.good("DELETE", f"{path}/z")
    assert api.ask("GET", f"{path}/z").status_code == 404
    assert api.ask("DELETE", f"{path}/z").status_code == 404


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("hw:cpu_policy", "dedicated", 200),
        ("hw:cpu_policy", "mine", 400),
        ("hw:no_such_thing", "1", 400),
        ("custom:thing", "1", 200),
        ("plain", "1", 200),
    ],
)
def test_extra_specs_are_checked_from_2_86_on(api: WholeAPI, name: str, value: str, status: int) -> None:
    _create(api, "a")
    body = {"extra_specs": {name: value}}

    assert api.ask("POST", "/v2.1/flavors/a/os-extra_specs", body, version="2.85").status_code == 200
    assert api.ask("POST", "/v2.1/flavors/a/os-extra_specs", body, version="2.86").status_code == status


def test_delete(api: WholeAPI) -> None:
    _create(api, "a", **{"os-flavor-access:is_public": False})
    api.good("POST", "/v2.1/flavors/a/action", {"addTenantAccess": {"tenant": "p"}})

    assert api.ask("DELETE", "/v2.1/flavors/a").status_code == 202
    assert api.ask("DELETE", "/v2.1/flavors/a").status_code == 404


def test_flavors_from_2_102_on(api: WholeAPI) -> None:
    small, large = _create(api, "small"), _create(api, "large")

    def listed(query: str, version: str = "2.102") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = api.good("GET", f"/v2.1/flavors/detail?{query}", version=version)["flavors"]
        return found

    assert [one["id"] for one in listed("name=large")] == [large["id"]]
    assert listed("name=larg") == []
    gone = {"rxtx_factor", "OS-FLV-DISABLED:disabled"}
    assert set(listed("", "2.101")[0]) - set(listed("")[0]) == gone
    assert not gone & set(api.good("GET", f"/v2.1/flavors/{small['id']}", version="2.102")["flavor"])
    assert api.ask("GET", "/v2.1/flavors?name=large", version="2.101").status_code == 400
    body = {"flavor": {"name": "x", "vcpus": 1, "ram": 1, "disk": 0, "rxtx_factor": 1.0}}
    assert api.ask("POST", "/v2.1/flavors", body, version="2.102").status_code == 400
    assert api.ask("POST", "/v2.1/flavors", body, version="2.101").status_code == 200

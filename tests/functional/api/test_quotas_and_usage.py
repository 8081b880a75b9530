# SPDX-License-Identifier: Apache-2.0
"""Quota sets, the quota class, limits, and simple tenant usage."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from nova_lite import exception
from nova_lite.db import models, quotas
from tests.fixtures.whole_api import WholeAPI

ONE, TWO = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
CORE = {"instances", "cores", "ram", "metadata_items", "key_pairs", "server_groups", "server_group_members"}
FILES = {"injected_files", "injected_file_content_bytes", "injected_file_path_bytes"}
NETWORK = {"floating_ips", "fixed_ips", "security_groups", "security_group_rules"}


def _path(api: WholeAPI, project: str = "blue") -> str:
    return f"/v2.1/os-quota-sets/{api.project[project]}"


@pytest.mark.parametrize(
    ("version", "keys"),
    [("2.35", CORE | FILES | NETWORK), ("2.36", CORE | FILES), ("2.56", CORE | FILES), ("2.57", CORE)],
)
def test_resources_by_version(api: WholeAPI, version: str, keys: set[str]) -> None:
    shown = api.good("GET", _path(api), user="alice", version=version)["quota_set"]

    assert set(shown) == keys | {"id"}
    assert (shown["id"], shown["cores"]) == (api.project["blue"], 20)


def test_own_limit_beats_class_beats_option(api: WholeAPI) -> None:
    api.good("PUT", "/v2.1/os-quota-class-sets/default", {"quota_class_set": {"cores": 30, "ram": 1000}})
    api.good("PUT", _path(api), {"quota_set": {"cores": "5"}})

    shown = api.good("GET", _path(api))["quota_set"]
    assert (shown["cores"], shown["ram"], shown["instances"]) == (5, 1000, 10)
    assert api.good("GET", _path(api, "red"))["quota_set"]["cores"] == 30
    assert api.good("GET", f"{_path(api)}/defaults")["quota_set"]["cores"] == 30
    assert api.ask("DELETE", _path(api)).status_code == 202
    assert api.good("GET", _path(api))["quota_set"]["cores"] == 30


def test_limit_below_use_needs_force(api: WholeAPI) -> None:
    project = api.project["blue"]
    api.db.write(lambda conn: quotas.reserve(conn, api.conf, project, 2, 4, 1024))

    assert api.ask("PUT", _path(api), {"quota_set": {"cores": 3}}).status_code == 400
    assert api.good("PUT", _path(api), {"quota_set": {"cores": 3, "force": True}})["quota_set"]["cores"] == 3
    detail = api.good("GET", f"{_path(api)}/detail")["quota_set"]
    assert detail["cores"] == {"limit": 3, "in_use": 4, "reserved": 0}


@pytest.mark.parametrize(
    "values",
    [
        {"cores": -2},
        {"cores": "x"},
        {"cores": 2**31},
        {"cores": "9999999999"},
        {"cores": "-5"},
        {"cores": None},
        {"cores": 1.5},
        {"unknown": 1},
        {"floating_ips": 1},
        {"injected_files": 1},
    ],
)
def test_bad_limits(api: WholeAPI, values: dict[str, Any]) -> None:
    assert api.ask("PUT", _path(api), {"quota_set": values}).status_code == 400
    assert api.count(models.quota_limits) == 0


def test_quota_classes_by_version(api: WholeAPI) -> None:
    path = "/v2.1/os-quota-class-sets/default"
    groups = {"server_groups", "server_group_members"}

    assert set(api.good("GET", path, version="2.49")["quota_class_set"]) == {"id"} | CORE - groups | FILES | NETWORK
    assert set(api.good("GET", path, version="2.50")["quota_class_set"]) == {"id"} | CORE | FILES
    assert set(api.good("GET", path, version="2.57")["quota_class_set"]) == {"id"} | CORE
    assert api.ask("GET", "/v2.1/os-quota-class-sets/other").status_code == 404


def test_limits(api: WholeAPI) -> None:
    project = api.project["blue"]
    api.db.write(lambda conn: quotas.reserve(conn, api.conf, project, 2, 4, 1024))

    old = api.good("GET", "/v2.1/limits", user="alice", version="2.1")["limits"]
    assert old["rate"] == []
    absolute = old["absolute"]
    assert (absolute["totalInstancesUsed"], absolute["totalCoresUsed"], absolute["totalRAMUsed"]) == (2, 4, 1024)
    assert (absolute["maxTotalInstances"], absolute["maxTotalCores"]) == (10, 20)
    new = set(api.good("GET", "/v2.1/limits", user="alice")["limits"]["absolute"])
    gone = {"maxImageMeta", "maxPersonality", "maxPersonalitySize", "maxTotalFloatingIps", "maxSecurityGroups"}
    gone |= {"maxSecurityGroupRules", "totalFloatingIpsUsed", "totalSecurityGroupsUsed"}
    assert set(absolute) - new == gone
    other = api.good("GET", f"/v2.1/limits?tenant_id={project}")["limits"]["absolute"]
    assert other["totalInstancesUsed"] == 2


def _usage(api: WholeAPI, path: str = "", **more: Any) -> Any:
    span = "start=2026-01-01T00:00:00&end=2026-01-02T00:00:00"
    return api.good("GET", f"/v2.1/os-simple-tenant-usage{path}?{span}&detailed=1", **more)


def test_usage_counts_the_hours_in_the_span(api: WholeAPI) -> None:
    api.add_host("h1")
    begin = datetime.datetime(2025, 12, 31, 12)
    api.add_instance(ONE, launched_at=begin, terminated_at=datetime.datetime(2026, 1, 1, 6), deleted=1)
    api.add_instance(TWO, project="red", launched_at=datetime.datetime(2026, 1, 1, 12))

    blue = _usage(api, f"/{api.project['blue']}", user="alice")["tenant_usage"]

    assert (blue["total_hours"], blue["total_vcpus_usage"], blue["total_memory_mb_usage"]) == (6, 6, 6 * 512)
    [server] = blue["server_usages"]
    assert (server["instance_id"], server["state"], server["hours"]) == (ONE, "terminated", 6)
    both = {one["tenant_id"]: one["total_hours"] for one in _usage(api)["tenant_usages"]}
    assert both == {api.project["blue"]: 6, api.project["red"]: 12}


def test_usage_of_nothing_is_zero(api: WholeAPI) -> None:
    assert _usage(api, f"/{api.project['blue']}")["tenant_usage"]["total_hours"] == 0
    assert _usage(api)["tenant_usages"] == []


def test_usage_in_pages(api: WholeAPI) -> None:
    api.add_host("h1")
    for uuid in (ONE, TWO):
        api.add_instance(uuid, launched_at=datetime.datetime(2026, 1, 1, 12))
    path = f"/v2.1/os-simple-tenant-usage/{api.project['blue']}?start=2026-01-01&end=2026-01-02&limit=1"

    page = api.good("GET", path)
    assert [one["instance_id"] for one in page["tenant_usage"]["server_usages"]] == [ONE]
    assert ONE in page["tenant_usage_links"][0]["href"]
    rest = api.good("GET", f"{path}&marker={ONE}")
    assert [one["instance_id"] for one in rest["tenant_usage"]["server_usages"]] == [TWO]


@pytest.mark.parametrize("query", ["start=x", "start=2026-01-02&end=2026-01-01", "start=9999999", "marker=none"])
def test_bad_usage_queries(api: WholeAPI, query: str) -> None:
    assert api.ask("GET", f"/v2.1/os-simple-tenant-usage?{query}").status_code == 400


def test_extensions(api: WholeAPI) -> None:
    aliases = {one["alias"] for one in api.good("GET", "/v2.1/extensions")["extensions"]}

    assert "os-keypairs" in aliases
    assert api.good("GET", "/v2.1/extensions/os-keypairs")["extension"]["alias"] == "os-keypairs"
    assert api.ask("GET", "/v2.1/extensions/none").status_code == 404


def _user_path(api: WholeAPI, user: str = "alice", more: str = "") -> str:
    return f"{_path(api)}{more}?user_id={api.user[user]}"


def test_a_user_has_the_projects_limits_until_there_are_own_ones(api: WholeAPI) -> None:
    api.good("PUT", _path(api), {"quota_set": {"cores": 10}})

    assert api.good("GET", _user_path(api), user="alice")["quota_set"]["cores"] == 10
    changed = api.good("PUT", _user_path(api), {"quota_set": {"cores": 4}})["quota_set"]
    assert (changed["cores"], changed["ram"], "id" in changed) == (4, 51200, False)
    assert api.good("GET", _user_path(api))["quota_set"]["cores"] == 4
    assert api.good("GET", _path(api))["quota_set"]["cores"] == 10
    assert api.good("GET", _user_path(api, "bob"))["quota_set"]["cores"] == 10
    api.add_host("h1")
    api.add_instance(ONE, user_id=api.user["alice"], vcpus=3)
    detail = api.good("GET", _user_path(api, more="/detail"))["quota_set"]
    assert (detail["cores"], detail["instances"]["in_use"]) == ({"limit": 4, "in_use": 3, "reserved": 0}, 1)

    assert api.ask("DELETE", _user_path(api)).status_code == 202
    assert api.good("GET", _user_path(api))["quota_set"]["cores"] == 10
    api.good("PUT", _user_path(api), {"quota_set": {"cores": 4}})
    assert api.ask("DELETE", _path(api)).status_code == 202
    assert api.good("GET", _user_path(api))["quota_set"]["cores"] == 20


def test_users_get_no_more_than_their_project_has(api: WholeAPI) -> None:
    def set_cores(path: str, cores: int, **more: Any) -> int:
        return int(api.ask("PUT", path, {"quota_set": {"cores": cores, **more}}).status_code)

    assert set_cores(_user_path(api), 21) == 400
    assert set_cores(_user_path(api), -1) == 400
    assert set_cores(_user_path(api), 15) == 200
    assert set_cores(_user_path(api, "bob"), 6) == 400
    assert set_cores(_user_path(api, "bob"), 5) == 200
    assert set_cores(_path(api), 19) == 400
    assert set_cores(_user_path(api, "bob"), 6, force=True) == 200
    api.add_host("h1")
    api.add_instance(ONE, user_id=api.user["alice"], vcpus=3)
    assert set_cores(_user_path(api), 2) == 400
    assert set_cores(_user_path(api), 3) == 200
    assert api.ask("PUT", _user_path(api), {"quota_set": {"cores": 1}}, user="alice").status_code == 403


def test_a_users_own_limit_is_kept_to(api: WholeAPI) -> None:
    project, alice, bob = api.project["blue"], api.user["alice"], api.user["bob"]
    api.good("PUT", _user_path(api), {"quota_set": {"cores": 4, "server_groups": 1, "key_pairs": 0}})
    api.add_host("h1")
    api.add_instance(ONE, user_id=alice, vcpus=3)

    def reserve(user: str, cores: int) -> None:
        api.db.write(lambda conn: quotas.reserve(conn, api.conf, project, 1, cores, 1, user))

    with pytest.raises(exception.QuotaExceeded, match="cores: Requested 2, but already used 3 of 4"):
        reserve(alice, 2)
    reserve(alice, 1)
    reserve(bob, 10)
    group = {"server_group": {"name": "g", "policy": "affinity"}}
    assert api.ask("POST", "/v2.1/os-server-groups", group, user="alice").status_code == 200
    assert api.ask("POST", "/v2.1/os-server-groups", group, user="alice").status_code == 403
    pair = {"keypair": {"name": "k"}}
    assert api.ask("POST", "/v2.1/os-keypairs", pair, user="alice", version="2.91").status_code == 403

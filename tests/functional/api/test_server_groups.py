# SPDX-License-Identifier: Apache-2.0
"""Server groups: policies by version, members as they are, quota."""

from __future__ import annotations

from typing import Any

import pytest

from nova_lite.db import models
from tests.fixtures.whole_api import WholeAPI

ONE, TWO = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"


def _create(api: WholeAPI, version: str = "2.64", user: str = "alice", **fields: Any) -> Any:
    return api.ask("POST", "/v2.1/os-server-groups", {"server_group": fields}, user=user, version=version)


@pytest.mark.parametrize(
    ("version", "fields", "status"),
    [
        ("2.1", {"policies": ["affinity"]}, 200),
        ("2.14", {"policies": ["soft-affinity"]}, 400),
        ("2.15", {"policies": ["soft-affinity"]}, 200),
        ("2.15", {"policies": ["affinity", "anti-affinity"]}, 400),
        ("2.15", {"policies": []}, 400),
        ("2.64", {"policies": ["affinity"]}, 400),
        ("2.64", {"policy": "soft-anti-affinity"}, 200),
        ("2.64", {"policy": "legacy"}, 400),
        ("2.64", {"policy": "anti-affinity", "rules": {"max_server_per_host": "3"}}, 200),
        ("2.64", {"policy": "anti-affinity", "rules": {"max_server_per_host": 0}}, 400),
        ("2.64", {"policy": "affinity", "rules": {"max_server_per_host": 3}}, 400),
        ("2.64", {"policy": "affinity", "metadata": {}}, 400),
    ],
)
def test_policies_by_version(api: WholeAPI, version: str, fields: dict[str, Any], status: int) -> None:
    assert _create(api, version, name="g", **fields).status_code == status
    assert api.count(models.server_groups) == (status == 200)


def test_shape_by_version(api: WholeAPI) -> None:
    created = _create(api, name="g", policy="anti-affinity", rules={"max_server_per_host": 2}).json["server_group"]

    assert created["rules"] == {"max_server_per_host": 2}
    shown = {
        version: api.good("GET", f"/v2.1/os-server-groups/{created['id']}", user="alice", version=version)
        for version in ("2.1", "2.13", "2.64")
    }
    assert set(shown["2.1"]["server_group"]) == {"id", "name", "members", "policies", "metadata"}
    assert set(shown["2.13"]["server_group"]) == {
        *("id", "name", "members", "policies", "metadata", "project_id", "user_id")
    }
    assert shown["2.64"]["server_group"] == created


def test_members_are_the_servers_that_are_there(api: WholeAPI) -> None:
    group = _create(api, name="g", policy="affinity").json["server_group"]
    row = api.db.read(lambda conn: conn.execute(models.server_groups.select()).one())
    api.add_host("h1")
    api.add_instance(ONE, group_id=row.id)
    api.add_instance(TWO, group_id=row.id, deleted=7)

    assert api.good("GET", f"/v2.1/os-server-groups/{group['id']}", user="alice")["server_group"]["members"] == [ONE]
    [listed] = api.good("GET", "/v2.1/os-server-groups", user="alice")["server_groups"]
    assert listed["members"] == [ONE]


def test_delete_frees_the_members(api: WholeAPI) -> None:
    group = _create(api, name="g", policy="affinity").json["server_group"]
    row = api.db.read(lambda conn: conn.execute(models.server_groups.select()).one())
    api.add_host("h1")
    api.add_instance(ONE, group_id=row.id)

    assert api.ask("DELETE", f"/v2.1/os-server-groups/{group['id']}", user="alice").status_code == 204

    assert api.db.read(lambda conn: conn.execute(models.instances.select()).one()).group_id is None
    assert api.ask("DELETE", f"/v2.1/os-server-groups/{group['id']}", user="alice").status_code == 404


def test_projects_see_their_own(api: WholeAPI) -> None:
    group = _create(api, name="g", policy="affinity").json["server_group"]

    assert api.ask("GET", f"/v2.1/os-server-groups/{group['id']}", user="bob").status_code == 404
    assert api.ask("DELETE", f"/v2.1/os-server-groups/{group['id']}", user="bob").status_code == 404
    assert api.good("GET", "/v2.1/os-server-groups?all_projects=1", user="bob")["server_groups"] == []
    assert len(api.good("GET", "/v2.1/os-server-groups?all_projects=1")["server_groups"]) == 1


def test_quota(api: WholeAPI) -> None:
    api.good("PUT", f"/v2.1/os-quota-sets/{api.project['blue']}", {"quota_set": {"server_groups": 1}})

    assert _create(api, name="a", policy="affinity").status_code == 200
    assert _create(api, name="b", policy="affinity").status_code == 403
    assert api.count(models.server_groups) == 1

# SPDX-License-Identifier: Apache-2.0
"""The embedded identity service: logging in, tokens, the catalogue, and users that come and go."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from nova_lite import identity_file
from tests.fixtures.whole_api import PASSWORD, WholeAPI


def _login(api: WholeAPI, user: dict[str, Any], scope: Any = None) -> Any:
    auth: dict[str, Any] = {"identity": {"methods": ["password"], "password": {"user": user}}}
    if scope is not None:
        auth["scope"] = scope
    return api.ask("POST", "/v3/auth/tokens", {"auth": auth}, user=None, version=None)


def _alice(password: str = PASSWORD) -> dict[str, Any]:
    return {"name": "alice", "domain": {"name": "Default"}, "password": password}


def _blue() -> dict[str, Any]:
    return {"project": {"name": "blue", "domain": {"id": "default"}}}


def test_login_gives_a_token_that_works(api: WholeAPI) -> None:
    answer = _login(api, _alice(), _blue())

    assert answer.status_code == 201
    token = answer.json["token"]
    assert token["project"]["id"] == api.project["blue"]
    assert token["user"] == {
        "id": api.user["alice"],
        "name": "alice",
        "domain": {"id": "default", "name": "Default"},
        "password_expires_at": None,
    }
    assert [role["name"] for role in token["roles"]] == ["member", "reader"]
    headers = {"X-Auth-Token": answer.headers["X-Subject-Token"]}
    assert api.ask("GET", "/v2.1/flavors", user=None, headers=headers).status_code == 200


def test_catalogue_has_the_three_faces(api: WholeAPI) -> None:
    catalog = _login(api, _alice(), _blue()).json["token"]["catalog"]

    urls = {
        service["type"]: endpoint["url"]
        for service in catalog
        for endpoint in service["endpoints"]
        if endpoint["interface"] == "public"
    }
    base = "http://falconframework.org"
    assert urls == {"compute": f"{base}/v2.1", "identity": f"{base}/v3", "image": f"{base}/image"}


@pytest.mark.parametrize(
    ("user", "scope"),
    [
        (_alice("wrong"), _blue()),
        (_alice(""), _blue()),
        (_alice("x" * 4000), _blue()),
        ({"name": "nobody", "password": PASSWORD}, None),
        ({"name": "alice", "domain": {"name": "Other"}, "password": PASSWORD}, None),
        (_alice(), {"project": {"name": "red", "domain": {"id": "default"}}}),
        (_alice(), {"project": {"name": "none", "domain": {"id": "default"}}}),
        (_alice(), {"system": {"all": True}}),
    ],
)
def test_refused_logins(api: WholeAPI, user: dict[str, Any], scope: Any) -> None:
    answer = _login(api, user, scope)

    assert answer.status_code == 401
    assert answer.json["error"]["code"] == 401
    assert "X-Subject-Token" not in answer.headers


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"auth": {}},
        {"auth": {"identity": {"methods": []}}},
        {"auth": {"identity": {"methods": ["password"], "password": {"user": _alice("\x00")}}}},
        {"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "alice", "password": 1}}}}},
        {"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": 1, "password": "x"}}}}},
        b"{",
    ],
)
def test_malformed_logins(api: WholeAPI, body: Any) -> None:
    assert api.ask("POST", "/v3/auth/tokens", body, user=None).status_code == 400


def test_login_without_scope_gets_the_first_project(api: WholeAPI) -> None:
    assert _login(api, _alice()).json["token"]["project"]["name"] == "blue"


def test_unscoped_token_is_good_for_rescoping_only(api: WholeAPI) -> None:
    answer = _login(api, {"id": api.user["alice"], "password": PASSWORD}, "unscoped")
    unscoped = answer.headers["X-Subject-Token"]
    assert "project" not in answer.json["token"]
    assert api.ask("GET", "/v2.1/flavors", user=None, headers={"X-Auth-Token": unscoped}).status_code == 403

    auth = {"identity": {"methods": ["token"], "token": {"id": unscoped}}, "scope": _blue()}
    scoped = api.ask("POST", "/v3/auth/tokens", {"auth": auth}, user=None)

    assert scoped.status_code == 201
    assert scoped.json["token"]["methods"] == ["token", "password"]
    assert scoped.json["token"]["project"]["name"] == "blue"


def test_validate_and_revoke(api: WholeAPI) -> None:
    text = _login(api, _alice(), _blue()).headers["X-Subject-Token"]
    subject = {"X-Subject-Token": text}

    assert api.good("GET", "/v3/auth/tokens", headers=subject)["token"]["user"]["name"] == "alice"
    assert api.ask("GET", "/v3/auth/tokens", user="bob", headers=subject).status_code == 403
    assert api.ask("DELETE", "/v3/auth/tokens", user="bob", headers=subject).status_code == 403
    assert api.ask("DELETE", "/v3/auth/tokens", user="alice", headers=subject).status_code == 204
    assert api.ask("GET", "/v2.1/flavors", user=None, headers={"X-Auth-Token": text}).status_code == 401
    assert api.ask("GET", "/v3/auth/tokens", headers=subject).status_code == 404
    # Other tokens of the same user are as good as before.
    assert api.ask("GET", "/v2.1/flavors", user="alice").status_code == 200


def test_projects_and_users(api: WholeAPI) -> None:
    assert {p["name"] for p in api.good("GET", "/v3/projects")["projects"]} == {"admin", "blue", "red"}
    assert [p["name"] for p in api.good("GET", "/v3/projects?name=red")["projects"]] == ["red"]
    assert api.ask("GET", "/v3/projects", user="alice").status_code == 403
    assert api.good("GET", f"/v3/projects/{api.project['blue']}", user="alice")["project"]["name"] == "blue"
    assert api.ask("GET", f"/v3/projects/{api.project['red']}", user="alice").status_code == 403
    assert [p["name"] for p in api.good("GET", "/v3/auth/projects", user="alice")["projects"]] == ["blue"]
    assert api.good("GET", f"/v3/users/{api.user['bob']}")["user"]["name"] == "bob"
    assert "password" not in str(api.good("GET", "/v3/users")).replace("password_expires_at", "")


@pytest.fixture
def moving(api: WholeAPI, people: Path, tmp_path: Path) -> Iterator[WholeAPI]:
    """An api with a users file of its own, that the test changes."""
    own = tmp_path / "own"
    shutil.copytree(people, own)
    made = WholeAPI(own, tmp_path)
    yield made
    made.close()


def test_removed_user_is_out_at_once(moving: WholeAPI) -> None:
    text = moving.token("bob")
    headers = {"X-Auth-Token": text}
    assert moving.ask("GET", "/v2.1/flavors", user=None, headers=headers).status_code == 200

    identity_file.remove_user(moving.conf.auth.users_file, "bob")

    assert moving.ask("GET", "/v2.1/flavors", user=None, headers=headers).status_code == 401
    assert _login(moving, {"name": "bob", "password": PASSWORD}).status_code == 401


def test_changed_password_and_role_count_at_once(moving: WholeAPI) -> None:
    assert _login(moving, _alice()).status_code == 201

    identity_file.add_user(moving.conf.auth.users_file, "alice", "new one", "blue", ("reader",))

    assert _login(moving, _alice()).status_code == 401
    token = _login(moving, _alice("new one")).json["token"]
    assert [role["name"] for role in token["roles"]] == ["reader"]
    body = {"server_group": {"name": "g", "policy": "affinity"}}
    assert moving.ask("POST", "/v2.1/os-server-groups", body, user="alice").status_code == 403


def test_file_that_everybody_can_read_lets_nobody_in(moving: WholeAPI) -> None:
    Path(moving.conf.auth.users_file).chmod(0o604)

    answer = _login(moving, _alice())

    assert answer.status_code == 401
    assert "users.yaml" not in answer.text


def _forgeries(api: WholeAPI) -> dict[str, str]:
    """Make tokens that claim to be root's, none of them signed with the cloud's key over what they say."""
    good = api.token("alice")
    header, payload, signature = good.split(".")
    claims = jwt.decode(good, options={"verify_signature": False})
    as_root = claims | {"sub": api.user["root"], "project": api.project["admin"]}
    body = jwt.encode(as_root, "k" * 32, algorithm="HS256").split(".")[1]
    return {
        "no algorithm": jwt.encode(as_root, "", algorithm="none"),
        "another key": jwt.encode(as_root, "k" * 32, algorithm="HS256"),
        "another payload": f"{header}.{body}.{signature}",
        "no signature": f"{header}.{payload}.",
        "cut off": good[:-4],
        "longer": f"{good}AAAA",
    }


@pytest.mark.parametrize(
    "forgery",
    ["no algorithm", "another key", "another payload", "no signature", "cut off", "longer"],
)
def test_forged_tokens_are_worth_nothing(api: WholeAPI, forgery: str) -> None:
    headers = {"X-Auth-Token": _forgeries(api)[forgery]}
    assert api.ask("GET", "/v2.1/flavors", user=None, headers=headers).status_code == 401

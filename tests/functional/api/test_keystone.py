# SPDX-License-Identifier: Apache-2.0
"""The api behind keystonemiddleware, which is out of reach here: whoever has no token, or forges one, stays out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nova_lite.api.auth import KeystoneAuthenticator
from nova_lite.api.request import Request
from tests.fixtures.whole_api import WholeAPI

KEYSTONE = "https://keystone.example.org/v3"
CONFIRMED = {
    "X-Identity-Status": "Confirmed",
    "X-User-Id": "u",
    "X-Project-Id": "p",
    "X-Roles": "admin,member,reader",
}


@pytest.fixture
def api(people: Path, bus: None, tmp_path: Path) -> Iterator[WholeAPI]:
    login = "auth_type = password\nauth_url = http://127.0.0.1:1/v3\nusername = n\npassword = p\n"
    (tmp_path / "api.conf").write_text(f"[keystone_authtoken]\nwww_authenticate_uri = {KEYSTONE}\n{login}")
    made = WholeAPI(people, tmp_path, auth__strategy="keystone")
    yield made
    made.close()


def test_versions_need_no_token(api: WholeAPI) -> None:
    assert api.ask("GET", "/v2.1", user=None).status_code == 200


def test_no_token_is_401(api: WholeAPI) -> None:
    answer = api.ask("GET", "/v2.1/flavors", user=None)

    assert answer.status_code == 401
    assert "X-OpenStack-Request-ID" in answer.headers
    assert answer.headers["WWW-Authenticate"] == f'Keystone uri="{KEYSTONE}"'


def test_what_the_middleware_says_cannot_be_forged(api: WholeAPI) -> None:
    assert api.ask("GET", "/v2.1/flavors", user=None, headers=CONFIRMED).status_code == 401


def test_embedded_identity_is_away(api: WholeAPI) -> None:
    body = {"auth": {"identity": {"methods": ["password"]}}}
    assert api.ask("POST", "/v3/auth/tokens", body, user=None).status_code == 404


def test_context_is_what_the_middleware_says() -> None:
    import falcon.testing

    req = Request(falcon.testing.create_environ(headers={**CONFIRMED, "X-Auth-Token": "t"}))
    req.request_id = "req-1"

    context = KeystoneAuthenticator().context(req)

    assert (context.user_id, context.project_id, context.auth_token) == ("u", "p", "t")
    assert context.roles == ["admin", "member", "reader"]
    assert context.request_id == "req-1"


def test_a_keystone_that_cannot_be_asked_is_503_and_not_a_bad_token(api: WholeAPI) -> None:
    answer = api.ask("GET", "/v2.1/flavors", user=None, headers={"X-Auth-Token": "gAAAA"})

    assert answer.status_code == 503
    assert "identity service" in answer.json["serviceUnavailable"]["message"]

# SPDX-License-Identifier: Apache-2.0
"""What happens to every request: ids, microversions, tokens, errors, and bodies that are no good."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nova_lite import exception, rpc
from nova_lite.db import models
from nova_lite.db.session import Database
from tests.fixtures.whole_api import LATEST, WholeAPI

FLAVOR = {"name": "f", "ram": 64, "vcpus": 1, "disk": 1}


def test_versions_document_needs_no_token(api: WholeAPI) -> None:
    versions = api.good("GET", "/", user=None, version=None)["versions"]

    assert [version["id"] for version in versions] == ["v2.0", "v2.1"]
    assert (versions[1]["status"], versions[1]["version"], versions[1]["min_version"]) == ("CURRENT", LATEST, "2.1")


@pytest.mark.parametrize("path", ["/v2.1", "/v2.1/"])
def test_version_document(api: WholeAPI, path: str) -> None:
    version = api.good("GET", path, user=None, version=None)["version"]

    assert version["id"] == "v2.1"
    assert version["links"][0]["href"].endswith("/v2.1/")


@pytest.mark.parametrize("path", ["/", "/v2.1", "/v2.1/flavors", "/v2.1/nothing", "/v3/nothing", "/image/v2/images"])
def test_every_answer_has_request_ids(api: WholeAPI, path: str) -> None:
    for user in ("root", None):
        headers = api.ask("GET", path, user=user).headers

        assert re.fullmatch(r"req-[0-9a-f-]{36}", headers["X-OpenStack-Request-ID"])
        assert headers["X-Compute-Request-Id"] == headers["X-OpenStack-Request-ID"]


def test_microversion_is_echoed_in_both_headers(api: WholeAPI) -> None:
    headers = api.ask("GET", "/v2.1/flavors", version="2.53").headers

    assert headers["OpenStack-API-Version"] == "compute 2.53"
    assert headers["X-OpenStack-Nova-API-Version"] == "2.53"
    assert "OpenStack-API-Version" in headers["Vary"]


def test_microversion_is_2_1_unless_asked_for(api: WholeAPI) -> None:
    assert api.ask("GET", "/v2.1/flavors", version=None).headers["OpenStack-API-Version"] == "compute 2.1"


@pytest.mark.parametrize(("asked", "status"), [("2.105", 406), ("3.0", 406), ("2.0", 406), ("x", 400), ("2.1.1", 400)])
def test_microversion_that_is_not_served(api: WholeAPI, asked: str, status: int) -> None:
    answer = api.ask("GET", "/v2.1/flavors", version=asked)

    assert answer.status_code == status
    [error] = answer.json.values()
    assert error["code"] == status
    assert error["message"]


@pytest.mark.parametrize("token", ["", "nonsense", "a.b.c", "\u00e9" * 100])
def test_bad_tokens_are_refused(api: WholeAPI, token: str) -> None:
    answer = api.ask("GET", "/v2.1/flavors", user=None, headers={"X-Auth-Token": token})

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Keystone uri=")
    assert answer.json["unauthorized"]["code"] == 401


def test_token_signed_with_another_key_is_refused(api: WholeAPI) -> None:
    import jwt

    claims = {"jti": "1", "sub": api.user["root"], "iat": 1, "exp": 2**40, "methods": ["password"]}
    for forged in (
        jwt.encode({**claims, "project": api.project["admin"]}, "k" * 64, algorithm="HS256"),
        jwt.encode(claims, None, algorithm="none"),
    ):
        assert api.ask("GET", "/v2.1/flavors", user=None, headers={"X-Auth-Token": forged}).status_code == 401


def test_unknown_path_and_method(api: WholeAPI) -> None:
    assert api.ask("GET", "/v2.1/nothing").json == {
        "itemNotFound": {"code": 404, "message": "The resource could not be found."}
    }
    assert api.ask("PUT", "/v2.1/flavors").json["badMethod"]["code"] == 405


def test_a_path_that_lacks_its_id_is_not_the_list(api: WholeAPI) -> None:
    for path in ("/v2.1/servers/", "/v2.1/os-simple-tenant-usage/", f"/v2.1/{api.project['admin']}/flavors/"):
        assert api.ask("GET", path).status_code == 404
    for path in ("/v2.1/", "/v3/"):
        assert api.ask("GET", path).status_code == 200


def test_project_id_in_the_path(api: WholeAPI) -> None:
    own, other = api.project["admin"], api.project["blue"]

    answer = api.good("POST", f"/v2.1/{own}/flavors", {"flavor": FLAVOR})

    assert f"/v2.1/{own}/flavors/" in answer["flavor"]["links"][0]["href"]
    assert api.ask("GET", f"/v2.1/{other}/flavors").status_code == 400
    assert api.ask("GET", f"/v2.1/{other}/nothing").status_code == 404


def test_method_of_other_versions_is_not_found(api: WholeAPI) -> None:
    assert api.ask("GET", "/v2.1/os-hosts", version="2.43").status_code == 404
    assert api.ask("GET", "/v2.1/os-hosts", version="2.42").status_code == 200


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (exception.DatabaseUnavailable(reason="away"), 503),
        (exception.HypervisorUnavailable(reason="away"), 503),
        (rpc.Timeout("no answer on topic secret"), 503),
        (KeyError("secret"), 500),
    ],
)
def test_failures_inside_show_no_insides(
    api: WholeAPI, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def fail(*args: Any) -> None:
        raise error

    monkeypatch.setattr(Database, "read", fail)

    answer = api.ask("GET", "/v2.1/flavors")

    assert answer.status_code == status
    assert "secret" not in answer.text
    assert "X-OpenStack-Request-ID" in answer.headers


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe{}",
        b'{"flavor": {"name": "\xff"}}',
        b'{"flavor": NaN}',
        b'{"flavor": {"name": "\\ud800", "ram": 64, "vcpus": 1, "disk": 1}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        {},
        {"flavor": None},
        {"flavor": {}},
        {"flavor": {**FLAVOR, "unknown": 1}},
        {"flavor": FLAVOR, "unknown": 1},
        {"flavor": {**FLAVOR, "ram": "many"}},
        {"flavor": {**FLAVOR, "ram": 10**30}},
        {"flavor": {**FLAVOR, "ram": str(2**31)}},
        {"flavor": {**FLAVOR, "ram": -1}},
        {"flavor": {**FLAVOR, "ram": 1.5}},
        {"flavor": {**FLAVOR, "ram": True}},
        {"flavor": {**FLAVOR, "vcpus": 0}},
        {"flavor": {**FLAVOR, "rxtx_factor": 0}},
        {"flavor": {**FLAVOR, "name": ""}},
        {"flavor": {**FLAVOR, "name": " "}},
        {"flavor": {**FLAVOR, "name": "a\u0000b"}},
        {"flavor": {**FLAVOR, "name": "n" * 256}},
        {"flavor": {**FLAVOR, "name": ["f"]}},
        {"flavor": {**FLAVOR, "id": "a/b"}},
        {"flavor": {**FLAVOR, "description": "d" * 65536}},
    ],
)
def test_bad_bodies_are_refused_with_a_sentence(api: WholeAPI, body: Any) -> None:
    answer = api.ask("POST", "/v2.1/flavors", body)

    assert answer.status_code == 400
    message = answer.json["badRequest"]["message"]
    assert 10 < len(message) < 1500
    assert api.count(models.flavors) == 0


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v2.1/flavors", {"flavor": {**FLAVOR, "description": "a\0b"}}),
        ("POST", "/v2.1/flavors/f1/os-extra_specs", {"extra_specs": {"hw:cpu_policy": "\0"}}),
        ("POST", "/v2.1/flavors/f1/os-extra_specs", {"extra_specs": {"a\0": "b"}}),
        ("GET", "/v2.1/flavors?marker=a%00", None),
    ],
)
def test_nul_is_refused_since_not_every_database_keeps_it(api: WholeAPI, method: str, path: str, body: Any) -> None:
    answer = api.ask(method, path, body)

    assert answer.status_code == 400
    assert "the character NUL" in answer.json["badRequest"]["message"]


def test_text_about_nul_is_not_nul(api: WholeAPI) -> None:
    assert api.ask("POST", "/v2.1/flavors", {"flavor": {**FLAVOR, "description": r"\u0000"}}).status_code == 200


def test_ten_megabytes_are_too_many(api: WholeAPI) -> None:
    body = b'{"flavor": {"name": "' + b"x" * 10_000_000 + b'"}}'

    answer = api.ask("POST", "/v2.1/flavors", body)

    assert answer.status_code == 413
    assert answer.json["overLimit"]["code"] == 413
    assert api.count(models.flavors) == 0


def test_other_content_types_are_refused(api: WholeAPI) -> None:
    answer = api.ask("POST", "/v2.1/flavors", {"flavor": FLAVOR}, headers={"Content-Type": "text/plain"})

    assert answer.status_code == 400


def test_error_says_which_field_and_why(api: WholeAPI) -> None:
    message = api.ask("POST", "/v2.1/flavors", {"flavor": {**FLAVOR, "vcpus": "x"}}).json["badRequest"]["message"]

    assert message.startswith("Invalid input for field/attribute vcpus. Value: x. ")


@pytest.mark.parametrize(
    "query",
    ["limit=x", "limit=-1", "limit=99999999999999999999", "%ff=1", "name=%ff", "marker=%c3%28", "limit=%00"],
)
def test_bad_queries_are_refused(api: WholeAPI, query: str) -> None:
    assert api.ask("GET", "/v2.1/flavors", query_string=query).status_code == 400


def test_unknown_query_parameters_are_refused_from_2_75_on(api: WholeAPI) -> None:
    assert api.ask("GET", "/v2.1/flavors", query_string="x=1", version="2.74").status_code == 200
    assert api.ask("GET", "/v2.1/flavors", query_string="x=1", version="2.75").status_code == 400


@pytest.mark.parametrize("identifier", ["x", "%00", "%ff%fe", "..%2f..", "a" * 2000, "%F0%9F%92%A9", "1%0a2", "'--"])
@pytest.mark.parametrize(
    "collection", ["flavors", "os-keypairs", "os-server-groups", "os-services", "os-hypervisors", "os-aggregates"]
)
def test_ids_that_are_none(api: WholeAPI, collection: str, identifier: str) -> None:
    for method in ("GET", "DELETE"):
        assert api.ask(method, f"/v2.1/{collection}/{identifier}").status_code in (400, 404, 405)


def test_member_may_not_do_what_is_the_administrators(api: WholeAPI) -> None:
    for method, path, body in (
        ("POST", "/v2.1/flavors", {"flavor": FLAVOR}),
        ("GET", "/v2.1/os-hypervisors", None),
        ("GET", "/v2.1/os-services", None),
        ("GET", "/v2.1/os-aggregates", None),
        ("GET", f"/v2.1/os-quota-sets/{api.project['red']}", None),
        ("PUT", f"/v2.1/os-quota-sets/{api.project['blue']}", {"quota_set": {"cores": 1000}}),
        ("GET", f"/v2.1/limits?tenant_id={api.project['red']}", None),
        ("GET", "/v2.1/os-simple-tenant-usage", None),
    ):
        answer = api.ask(method, path, body, user="alice")
        assert answer.status_code == 403, path
        assert answer.json["forbidden"]["message"].startswith("Policy doesn't allow os_compute_api:")
    assert api.count(models.flavors) == 0


@pytest.mark.parametrize(
    "path",
    ["flavors", "flavors/none/os-extra_specs", "os-aggregates", "os-availability-zone", "os-keypairs", "extensions",
     "servers/detail", "os-server-groups", "os-services", "os-migrations", "os-simple-tenant-usage", "limits"],
)  # fmt: skip
def test_unknown_query_parameters_are_refused_everywhere_from_2_102_on(api: WholeAPI, path: str) -> None:
    query = "limit=1&colour=red" if path == "flavors" else "colour=red"
    refused = api.ask("GET", f"/v2.1/{path}?{query}", version="2.102")
    expected = 404 if "none" in path else 400
    assert refused.status_code == expected, refused.text
    if expected == 400:
        assert "colour" in refused.json["badRequest"]["message"]
    if path in ("os-aggregates", "os-availability-zone", "extensions"):
        assert api.ask("GET", f"/v2.1/{path}?{query}", version="2.101").status_code == 200

# SPDX-License-Identifier: Apache-2.0
"""Key pairs: given, made, listed, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from nova_lite.db import models
from tests.fixtures.whole_api import WholeAPI

PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0WzXeqdKyLkW4cUPqXWQgGtQ8OW7uhmxQrYbFTqDhB me"
# As ssh-keygen -E md5 -l says.
FINGERPRINT = "c9:08:27:19:70:39:82:dc:1b:90:75:08:db:c7:d8:ff"


def _create(api: WholeAPI, name: str = "k", user: str = "alice", version: str = "2.10", **more: Any) -> Any:
    return api.ask("POST", "/v2.1/os-keypairs", {"keypair": {"name": name, **more}}, user=user, version=version)


@pytest.mark.parametrize(("version", "status", "has_type"), [("2.1", 200, False), ("2.2", 201, True)])
def test_given_key(api: WholeAPI, version: str, status: int, has_type: bool) -> None:
    answer = _create(api, version=version, public_key=PUBLIC)

    assert answer.status_code == status
    pair = answer.json["keypair"]
    assert (pair["fingerprint"], pair["public_key"]) == (FINGERPRINT, PUBLIC)
    assert ("type" in pair) is has_type
    assert "private_key" not in pair


@pytest.mark.parametrize("kind", ["ssh", "x509"])
def test_made_key_is_given_away_once(api: WholeAPI, kind: str) -> None:
    pair = _create(api, type=kind).json["keypair"]

    private = serialization.load_pem_private_key(pair["private_key"].encode(), None)
    assert private.key_size >= 2048  # type: ignore[union-attr]
    assert pair["public_key"].startswith("ssh-rsa " if kind == "ssh" else "-----BEGIN CERTIFICATE-----")
    shown = api.good("GET", "/v2.1/os-keypairs/k", user="alice", version="2.10")["keypair"]
    assert "private_key" not in shown
    assert shown["fingerprint"] == pair["fingerprint"]


@pytest.mark.parametrize(
    "key",
    ["nonsense", "ssh-rsa", "ssh-rsa !!!!", "ssh-rsa AAAA", f"{PUBLIC}\n{PUBLIC}", "ssh-rsa \u00e9", "-----BEGIN"],
)
def test_bad_keys_are_refused(api: WholeAPI, key: str) -> None:
    for kind in ("ssh", "x509"):
        assert _create(api, public_key=key, type=kind).status_code == 400
    assert api.count(models.key_pairs) == 0


def test_rules_of_2_92(api: WholeAPI) -> None:
    assert _create(api, version="2.92").status_code == 400
    assert _create(api, name="me@example.org", version="2.91", public_key=PUBLIC).status_code == 400
    assert _create(api, name="me@example.org", version="2.92", public_key=PUBLIC).status_code == 201


def test_users_have_their_own(api: WholeAPI) -> None:
    _create(api, public_key=PUBLIC)

    assert _create(api, public_key=PUBLIC).status_code == 409
    assert _create(api, user="bob", public_key=PUBLIC).status_code == 201
    assert api.ask("GET", f"/v2.1/os-keypairs?user_id={api.user['bob']}", user="alice").status_code == 403
    listed = api.good("GET", f"/v2.1/os-keypairs?user_id={api.user['bob']}", version="2.10")["keypairs"]
    assert [one["keypair"]["name"] for one in listed] == ["k"]
    # Below 2.10 there is no such parameter: it is ignored.
    assert api.good("GET", f"/v2.1/os-keypairs?user_id={api.user['bob']}", version="2.9")["keypairs"] == []


def test_pages_from_2_35_on(api: WholeAPI) -> None:
    for name in ("a", "b", "c"):
        _create(api, name=name, public_key=PUBLIC)

    page = api.good("GET", "/v2.1/os-keypairs?limit=2", user="alice")
    assert [one["keypair"]["name"] for one in page["keypairs"]] == ["a", "b"]
    assert "marker=b" in page["keypairs_links"][0]["href"]
    rest = api.good("GET", "/v2.1/os-keypairs?marker=b", user="alice")
    assert [one["keypair"]["name"] for one in rest["keypairs"]] == ["c"]
    assert len(api.good("GET", "/v2.1/os-keypairs?limit=2", user="alice", version="2.34")["keypairs"]) == 3


def test_quota(api: WholeAPI) -> None:
    api.conf.set_override("key_pairs", 1, group="quota")
    _create(api, public_key=PUBLIC)

    answer = _create(api, name="two", public_key=PUBLIC)

    assert answer.status_code == 403
    assert "Quota exceeded" in answer.json["forbidden"]["message"]
    assert api.count(models.key_pairs) == 1


@pytest.mark.parametrize(("version", "status"), [("2.1", 202), ("2.2", 204)])
def test_delete(api: WholeAPI, version: str, status: int) -> None:
    _create(api, public_key=PUBLIC)

    assert api.ask("DELETE", "/v2.1/os-keypairs/k", user="alice", version=version).status_code == status
    assert api.ask("DELETE", "/v2.1/os-keypairs/k", user="alice", version=version).status_code == 404

# SPDX-License-Identifier: Apache-2.0
"""What belongs to a project is not there for another one: not shown, not changed, and not given away by how lists go.

Routes are taken from the application, so that a new one is tried without being named here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nova_lite.api import app as application
from nova_lite.api import images
from nova_lite.db import models
from tests.fixtures.whole_api import WholeAPI

SERVER = "aaaaaaaa-0000-4000-8000-000000000001"
ABSENT = "aaaaaaaa-0000-4000-8000-00000000000f"
JSON_PATCH = "application/openstack-images-v2.1-json-patch"

_METHODS = ("get", "post", "put", "patch", "delete")
_ROUTES = [
    (method.upper(), prefix + path)
    for prefix, routes in (
        ("/v2.1", [route for noun in application._NOUNS for route in noun.ROUTES]),
        ("", images.ROUTES),
    )
    for path, resource in routes
    for method in _METHODS
    if hasattr(resource, f"on_{method}")
]
_OF_A_SERVER = sorted({route for route in _ROUTES if "{server_id}" in route[1]})
_OF_AN_IMAGE = sorted({route for route in _ROUTES if "{image_id}" in route[1]})

# Bodies that pass their schemas, by how a path ends; where none is needed they do no harm.
_BODIES = {
    "/servers/{server_id}": {"server": {"name": "taken"}},
    "/servers/{server_id}/metadata": {"metadata": {"a": "b"}},
    "/metadata/{key}": {"meta": {"x": "b"}},
    "/servers/{server_id}/tags": {"tags": ["a"]},
    "/migrations/{migration_id}/action": {"force_complete": None},
    "/remote-consoles": {"remote_console": {"protocol": "vnc", "type": "novnc"}},
}
_ACTIONS = [
    {"reboot": {"type": "SOFT"}},
    {"os-start": None},
    {"os-stop": None},
    {"os-getConsoleOutput": {}},
    {"lock": None},
    {"unlock": None},
    {"resize": {"flavorRef": "2"}},
    {"confirmResize": None},
    {"revertResize": None},
    {"migrate": None},
    {"os-migrateLive": {"host": None, "block_migration": "auto"}},
    {"evacuate": {}},
]


def _body(path: str) -> object:
    return next((body for end, body in _BODIES.items() if path.endswith(end)), {})


@pytest.fixture
def blue(api: WholeAPI) -> Iterator[WholeAPI]:
    """An api with a server of alice, whose project is blue; bob's is red."""
    api.add_host("h1")
    api.add_instance(SERVER, project="blue")
    yield api


def _fill(path: str, server: str, image: str = "") -> str:
    filled = path.replace("{server_id}", server).replace("{image_id}", image).replace("{migration_id}", "1")
    return filled.replace("{key}", "x").replace("{tag}", "x").replace("{network}", "x").replace("{request_id}", "x")


@pytest.mark.parametrize(("method", "path"), _OF_A_SERVER)
def test_anothers_server_answers_like_one_that_is_not_there(blue: WholeAPI, method: str, path: str) -> None:
    before = blue.services.db.read(lambda conn: conn.execute(models.instances.select()).all())
    bodies = _ACTIONS if path.endswith("/{server_id}/action") else [_body(path)]
    for body in bodies:
        sent = body if method in ("POST", "PUT") else None
        anothers = blue.ask(method, _fill(path, SERVER), sent, user="bob")
        absent = blue.ask(method, _fill(path, ABSENT), sent, user="bob")

        assert anothers.status_code == absent.status_code == 404, body
        assert anothers.text.replace(SERVER, "") == absent.text.replace(ABSENT, "")
    assert blue.services.db.read(lambda conn: conn.execute(models.instances.select()).all()) == before


@pytest.mark.parametrize(("method", "path"), _OF_AN_IMAGE)
def test_anothers_image_answers_like_one_that_is_not_there(blue: WholeAPI, method: str, path: str) -> None:
    body = {"name": "i", "disk_format": "raw", "container_format": "bare"}
    image = blue.good("POST", "/image/v2/images", body, user="alice")["id"]
    content_type = {"PATCH": JSON_PATCH}.get(method, "application/octet-stream")
    answers = []
    for one in (image, ABSENT):
        sent = b"[]" if method == "PATCH" else b"x" if method == "PUT" else None
        headers = {"Content-Type": content_type}
        answers.append(blue.ask(method, _fill(path, "", one), sent, user="bob", headers=headers))

    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].text.replace(image, "") == answers[1].text.replace(ABSENT, "")
    assert blue.good("GET", f"/image/v2/images/{image}", user="alice")["status"] == "queued"


def test_anothers_server_is_no_marker(blue: WholeAPI) -> None:
    for path in ("/v2.1/servers", "/v2.1/servers/detail"):
        anothers = blue.ask("GET", path, user="bob", query_string=f"marker={SERVER}")
        absent = blue.ask("GET", path, user="bob", query_string=f"marker={ABSENT}")
        assert anothers.status_code == absent.status_code == 400
        assert anothers.text.replace(SERVER, "") == absent.text.replace(ABSENT, "")
    assert blue.good("GET", f"/v2.1/servers?marker={SERVER}", user="alice") == {"servers": []}
    assert blue.good("GET", f"/v2.1/servers?all_tenants=1&marker={SERVER}") == {"servers": []}


def test_anothers_server_is_no_marker_of_usage(blue: WholeAPI) -> None:
    path = f"/v2.1/os-simple-tenant-usage/{blue.project['red']}?marker={SERVER}"

    assert blue.ask("GET", path, user="bob").status_code == 400


def test_anothers_image_is_no_marker(blue: WholeAPI) -> None:
    body = {"name": "i", "disk_format": "raw", "container_format": "bare"}
    image = blue.good("POST", "/image/v2/images", body, user="alice")["id"]

    assert blue.ask("GET", f"/image/v2/images?marker={image}", user="bob").status_code == 400
    assert blue.ask("GET", f"/image/v2/images?marker={image}", user="alice").status_code == 200


def test_a_private_flavor_is_no_marker(blue: WholeAPI) -> None:
    body = {"name": "p", "id": "p", "vcpus": 1, "ram": 1, "disk": 1, "os-flavor-access:is_public": False}
    blue.good("POST", "/v2.1/flavors", {"flavor": body})

    assert blue.ask("GET", "/v2.1/flavors?marker=p", user="bob").status_code == 400
    assert blue.ask("GET", "/v2.1/flavors?is_public=None&marker=p").status_code == 200


def test_anothers_group_key_pair_and_quota_are_not_there(blue: WholeAPI) -> None:
    group = {"server_group": {"name": "g", "policy": "affinity"}}
    made = blue.good("POST", "/v2.1/os-server-groups", group, user="alice")["server_group"]["id"]
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBQ8xJFQxVqVh0kkqL4DpxHg0w9HX7yXgmnYWDFo2Yxr alice"
    blue.good("POST", "/v2.1/os-keypairs", {"keypair": {"name": "k", "type": "ssh", "public_key": key}}, user="alice")

    for method in ("GET", "DELETE"):
        assert blue.ask(method, f"/v2.1/os-server-groups/{made}", user="bob").status_code == 404
        assert blue.ask(method, "/v2.1/os-keypairs/k", user="bob").status_code == 404
    assert blue.ask("GET", f"/v2.1/os-keypairs?user_id={blue.user['alice']}", user="bob").status_code == 403
    assert blue.ask("GET", f"/v2.1/os-quota-sets/{blue.project['blue']}", user="bob").status_code == 403
    assert blue.good("GET", "/v2.1/os-server-groups", user="bob") == {"server_groups": []}
    server = {"name": "s", "imageRef": ABSENT, "flavorRef": "1", "networks": "none"}
    body = {"server": server, "os:scheduler_hints": {"group": made}}
    assert blue.ask("POST", "/v2.1/servers", body, user="bob").status_code == 400
    assert blue.count(models.server_groups) == blue.count(models.key_pairs) == 1

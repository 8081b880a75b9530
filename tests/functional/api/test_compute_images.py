# SPDX-License-Identifier: Apache-2.0
"""Images as Compute itself shows them: the images of the embedded service, up to 2.35; their metadata up to 2.38."""

from __future__ import annotations

from typing import Any

import pytest

from nova_lite.db import models
from tests.fixtures.whole_api import WholeAPI

SERVER = "aaaaaaaa-0000-4000-8000-000000000001"


def _image(api: WholeAPI, user: str = "alice", **fields: Any) -> str:
    body = {"name": "i", "disk_format": "raw", "container_format": "bare", **fields}
    return str(api.good("POST", "/image/v2/images", body, user=user)["id"])


def _ask(api: WholeAPI, method: str, path: str, body: Any = None, user: str = "alice", version: str = "2.1") -> Any:
    return api.ask(method, f"/v2.1/images{path}", body, user=user, version=version)


def _listed(api: WholeAPI, query: str) -> list[str]:
    listed, detailed = (_ask(api, "GET", path + query).json["images"] for path in ("", "/detail"))
    assert [one["id"] for one in listed] == [one["id"] for one in detailed]
    assert all(set(one) == {"id", "name", "links"} for one in listed)
    return [one["id"] for one in listed]


def test_an_image_is_shown_in_computes_words(api: WholeAPI) -> None:
    image = _image(api, min_disk=1, min_ram=64, os_distro="debian", instance_uuid=SERVER, auto_disk_config="true")

    shown = _ask(api, "GET", f"/{image}").json["image"]

    assert set(shown) == {
        *("id", "name", "links", "status", "progress", "minDisk", "minRam", "metadata", "created", "updated"),
        *("OS-EXT-IMG-SIZE:size", "OS-DCF:diskConfig", "server"),
    }
    assert (shown["status"], shown["progress"], shown["OS-DCF:diskConfig"]) == ("SAVING", 25, "AUTO")
    assert shown["metadata"] == {"os_distro": "debian", "instance_uuid": SERVER, "auto_disk_config": "true"}
    assert shown["server"]["id"] == SERVER
    links = {link["rel"]: link["href"] for link in shown["links"]}
    assert links["self"].endswith(f"/v2.1/images/{image}")
    assert links["alternate"].endswith(f"/image/v2/images/{image}")
    api.change(models.images, status="active", size=5)
    shown = _ask(api, "GET", f"/{image}").json["image"]
    assert (shown["status"], shown["progress"], shown["OS-EXT-IMG-SIZE:size"]) == ("ACTIVE", 100, 5)


def test_images_are_found_by_what_compute_calls_it(api: WholeAPI) -> None:
    plain = _image(api, name="plain", min_disk=3)
    snapshot = _image(api, name="snapshot", instance_uuid=SERVER, image_type="snapshot")
    _image(api, "bob", name="plain")

    assert _listed(api, "") == [snapshot, plain]
    assert _listed(api, "?name=plain") == [plain]
    assert _listed(api, "?status=SAVING&minDisk=3") == [plain]
    assert _listed(api, "?status=ACTIVE") == []
    assert _listed(api, "?type=snapshot") == [snapshot]
    assert _listed(api, "?property-image_type=snapshot") == [snapshot]
    for server in (SERVER, f"http://cloud/v2.1/servers/{SERVER}", f"http://cloud/servers/{SERVER}"):
        assert _listed(api, f"?server={server}") == [snapshot]
    assert _listed(api, "?changes-since=2020-01-01T00:00:00Z") == [snapshot, plain]
    assert _listed(api, "?changes-since=2120-01-01T00:00:00%2B01:00") == []


def test_pages_of_images(api: WholeAPI) -> None:
    first, second = _image(api), _image(api)

    page = _ask(api, "GET", "?limit=1").json
    assert [one["id"] for one in page["images"]] == [second]
    assert f"/v2.1/images?limit=1&marker={second}" in page["images_links"][0]["href"]
    assert _listed(api, f"?marker={second}") == [first]
    assert _listed(api, "?limit=0") == []


@pytest.mark.parametrize("query", ["limit=x", "changes-since=yesterday", "minRam=much", f"marker={SERVER}"])
def test_bad_queries_are_refused(api: WholeAPI, query: str) -> None:
    assert _ask(api, "GET", f"?{query}").status_code == 400


def test_an_image_is_deleted_by_those_who_may(api: WholeAPI) -> None:
    image = _image(api)
    public = _image(api, "root", visibility="public")

    assert _ask(api, "DELETE", f"/{image}", user="bob").status_code == 404
    assert _ask(api, "DELETE", f"/{public}").status_code == 403
    assert _ask(api, "DELETE", f"/{image}").status_code == 204
    assert _ask(api, "GET", f"/{image}").status_code == 404
    assert api.count(models.images) == 1


def test_metadata_is_added_changed_replaced_and_removed(api: WholeAPI) -> None:
    image = _image(api, os_distro="debian")
    path = f"/{image}/metadata"

    assert _ask(api, "GET", path).json == {"metadata": {"os_distro": "debian"}}
    both = {"os_distro": "debian", "os_version": "12"}
    assert _ask(api, "POST", path, {"metadata": {"os_version": "12"}}).json == {"metadata": both}
    assert _ask(api, "PUT", f"{path}/os_version", {"meta": {"os_version": "13"}}).json == {"meta": {"os_version": "13"}}
    assert _ask(api, "GET", f"{path}/os_version").json == {"meta": {"os_version": "13"}}
    assert _ask(api, "DELETE", f"{path}/os_distro").status_code == 204
    assert api.good("GET", f"/image/v2/images/{image}", user="alice")["os_version"] == "13"
    assert _ask(api, "PUT", path, {"metadata": {"a": "b"}}).json == {"metadata": {"a": "b"}}
    assert _ask(api, "GET", path).json == {"metadata": {"a": "b"}}


@pytest.mark.parametrize(
    ("method", "path", "body", "user", "status"),
    [
        ("GET", "/metadata/none", None, "alice", 404),
        ("DELETE", "/metadata/none", None, "alice", 404),
        ("PUT", "/metadata/a", {"meta": {"b": "c"}}, "alice", 400),
        ("PUT", "/metadata/a", {"meta": {"a": 1}}, "alice", 400),
        ("PUT", "/metadata", {"metadata": {"status": "active"}}, "alice", 400),
        ("POST", "/metadata", {"metadata": {"id": "x"}}, "alice", 400),
        ("POST", "/metadata", {"metadata": {f"k{n}": "" for n in range(129)}}, "alice", 403),
        ("GET", "/metadata", None, "bob", 404),
        ("PUT", "/metadata", {"metadata": {}}, "bob", 404),
    ],
)
def test_what_is_refused_of_metadata(api: WholeAPI, method: str, path: str, body: Any, user: str, status: int) -> None:
    image = _image(api, os_distro="debian")

    assert _ask(api, method, f"/{image}{path}", body, user).status_code == status
    assert _ask(api, "GET", f"/{image}/metadata").json == {"metadata": {"os_distro": "debian"}}


def test_the_image_service_is_asked_by_itself_from_2_36_on(api: WholeAPI) -> None:
    image = _image(api)

    for path in ("", "/detail", f"/{image}"):
        assert _ask(api, "GET", path, version="2.35").status_code == 200
        assert _ask(api, "GET", path, version="2.36").status_code == 404
    assert _ask(api, "DELETE", f"/{image}", version="2.36").status_code == 404
    assert _ask(api, "GET", f"/{image}/metadata", version="2.38").status_code == 200
    assert _ask(api, "GET", f"/{image}/metadata", version="2.39").status_code == 404

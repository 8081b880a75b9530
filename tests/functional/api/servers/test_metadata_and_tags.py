# SPDX-License-Identifier: Apache-2.0
"""What users write on their servers: metadata and tags."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.fixtures.server_api import ServerAPI


def test_metadata_is_added_replaced_and_removed(api: ServerAPI) -> None:
    server_id = api.active(metadata={"a": "1"})
    path = f"/servers/{server_id}/metadata"

    assert api.call("POST", path, {"metadata": {"b": "2"}}).json == {"metadata": {"a": "1", "b": "2"}}
    assert api.call("PUT", f"{path}/a", {"meta": {"a": "3"}}).json == {"meta": {"a": "3"}}
    assert api.call("GET", f"{path}/a").json == {"meta": {"a": "3"}}
    assert api.call("DELETE", f"{path}/a").status_code == 204
    assert api.call("DELETE", f"{path}/a").status_code == 404
    assert api.call("GET", f"{path}/a").status_code == 404
    assert api.call("PUT", path, {"metadata": {"c": "4"}}).json == {"metadata": {"c": "4"}}
    assert api.call("GET", path).json == {"metadata": {"c": "4"}}
    assert api.call("GET", f"/servers/{server_id}").json["server"]["metadata"] == {"c": "4"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "", {}),
        ("POST", "", {"metadata": None}),
        ("POST", "", {"metadata": {"a": None}}),
        ("POST", "", {"metadata": {"": "x"}}),
        ("POST", "", {"metadata": {"a/b": "x"}}),
        ("POST", "", {"metadata": {"a": "x" * 256}}),
        ("PUT", "", {"metadata": {"a": 1}}),
        ("PUT", "/a", {"meta": {"b": "1"}}),
        ("PUT", "/a", {"meta": {"a": "1", "b": "2"}}),
        ("PUT", "/a", {"meta": {}}),
    ],
)
def test_bad_metadata_is_refused(api: ServerAPI, method: str, path: str, body: Any) -> None:
    server_id = api.active(metadata={"a": "1"})

    assert api.call(method, f"/servers/{server_id}/metadata{path}", body).status_code == 400
    assert api.call("GET", f"/servers/{server_id}/metadata").json == {"metadata": {"a": "1"}}


def test_metadata_items_are_limited(make_api: Callable[..., ServerAPI]) -> None:
    api = make_api(quota__metadata_items=2)
    server_id = api.active(metadata={"a": "1"})

    answer = api.call("POST", f"/servers/{server_id}/metadata", {"metadata": {"b": "2", "c": "3"}})

    assert answer.status_code == 403
    assert "metadata_items" in answer.json["forbidden"]["message"]


def test_metadata_and_tags_wait_for_a_server_that_is_being_built(api: ServerAPI) -> None:
    server_id = api.create()

    assert api.call("POST", f"/servers/{server_id}/metadata", {"metadata": {"a": "b"}}).status_code == 409
    assert api.call("PUT", f"/servers/{server_id}/tags/a").status_code == 409


def test_concurrent_changes_lose_nothing(api: ServerAPI) -> None:
    server_id = api.active()

    def add(number: int) -> None:
        api.call("POST", f"/servers/{server_id}/metadata", {"metadata": {f"k{number}": "v"}})
        api.call("PUT", f"/servers/{server_id}/tags/t{number}")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    shown = api.call("GET", f"/servers/{server_id}").json["server"]
    assert shown["metadata"] == {f"k{number}": "v" for number in range(8)}
    assert shown["tags"] == [f"t{number}" for number in range(8)]


def test_tags_are_added_replaced_and_removed(api: ServerAPI) -> None:
    server_id = api.active()
    path = f"/servers/{server_id}/tags"

    added = api.call("PUT", f"{path}/blue")
    assert (added.status_code, added.text) == (201, "")
    assert added.headers["Location"].endswith(f"{path}/blue")
    assert api.call("PUT", f"{path}/blue").status_code == 204
    assert api.call("GET", f"{path}/blue").status_code == 204
    assert api.call("GET", f"{path}/red").status_code == 404
    assert api.call("PUT", path, {"tags": ["b", "a", "a"]}).json == {"tags": ["a", "b"]}
    assert api.call("GET", path).json == {"tags": ["a", "b"]}
    assert api.call("DELETE", f"{path}/a").status_code == 204
    assert api.call("DELETE", f"{path}/a").status_code == 404
    assert api.call("DELETE", path).status_code == 204
    assert api.call("GET", path).json == {"tags": []}


def test_tags_are_limited(api: ServerAPI) -> None:
    server_id = api.active()
    path = f"/servers/{server_id}/tags"
    api.call("PUT", path, {"tags": [f"t{number}" for number in range(50)]})

    assert api.call("PUT", f"{path}/one-more").status_code == 400
    assert api.call("PUT", f"{path}/t1").status_code == 204
    assert api.call("PUT", path, {"tags": [f"t{number}" for number in range(51)]}).status_code == 400


@pytest.mark.parametrize("tag", ["a,b", "x" * 61])
def test_bad_tags_are_refused(api: ServerAPI, tag: str) -> None:
    server_id = api.active()

    assert api.call("PUT", f"/servers/{server_id}/tags/{tag}").status_code == 400
    assert api.call("PUT", f"/servers/{server_id}/tags", {"tags": [tag]}).status_code == 400


def test_there_are_no_tags_below_2_26(api: ServerAPI) -> None:
    server_id = api.active()

    assert api.call("GET", f"/servers/{server_id}/tags", version="2.25").status_code == 404

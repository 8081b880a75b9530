# SPDX-License-Identifier: Apache-2.0
"""Rescuing: from which image, and with which password."""

from __future__ import annotations

from typing import Any

import pytest

from nova_lite.db import models, operations
from tests.fixtures.server_api import IMAGE, ServerAPI, add_image

OTHER = "22222222-2222-4222-8222-222222222222"


def _rescue(api: ServerAPI, server_id: str, value: Any) -> Any:
    return api.call("POST", f"/servers/{server_id}/action", {"rescue": value})


def _image_of_last(api: ServerAPI) -> str:
    operation = api.db.read(lambda conn: operations.get(conn, api.conductor.hints[-1][0]))
    assert operation is not None
    return str(operation.arguments["image"]["id"])


def test_without_an_image_the_servers_own_is_used(api: ServerAPI) -> None:
    server_id = api.active()

    answer = _rescue(api, server_id, None)

    assert (answer.status_code, set(answer.json)) == (200, {"adminPass"})
    assert _image_of_last(api) == IMAGE


def test_the_image_and_the_password_can_be_given(api: ServerAPI) -> None:
    api.db.write(lambda conn: add_image(conn, OTHER, "other"))
    server_id = api.active()

    answer = _rescue(api, server_id, {"adminPass": "secret", "rescue_image_ref": OTHER})

    assert (answer.status_code, answer.json) == (200, {"adminPass": "secret"})
    assert _image_of_last(api) == OTHER


@pytest.mark.parametrize(
    "value",
    [
        "now",
        {"rescue_image_ref": "no-uuid"},
        {"rescue_image_ref": OTHER},
        {"rescue_image_ref": None},
        {"adminPass": 1},
        {"colour": "red"},
    ],
)
def test_bad_bodies_are_refused(api: ServerAPI, value: Any) -> None:
    server_id = api.active()

    assert _rescue(api, server_id, value).status_code == 400
    assert api.count(models.operations) == 1


def test_an_image_without_content_is_refused(api: ServerAPI) -> None:
    api.db.write(lambda conn: add_image(conn, OTHER, "other", status="queued"))
    server_id = api.active()

    answer = _rescue(api, server_id, {"rescue_image_ref": OTHER})

    assert (answer.status_code, "is not supported" in answer.text) == (400, True)

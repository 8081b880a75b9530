# SPDX-License-Identifier: Apache-2.0
"""A reader of a project sees its servers and changes none, on whatever route there is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nova_lite.api import app as application
from nova_lite.db import models
from tests.fixtures.server_api import ServerAPI, create_body

_BODIES = {
    "/servers": create_body(),
    "/servers/{server_id}": {"server": {"name": "taken"}},
    "/servers/{server_id}/metadata": {"metadata": {"a": "b"}},
    "/servers/{server_id}/metadata/{key}": {"meta": {"x": "b"}},
    "/servers/{server_id}/tags": {"tags": ["a"]},
    "/servers/{server_id}/action": {"os-stop": None},
    "/servers/{server_id}/migrations/{migration_id}/action": {"force_complete": None},
    "/servers/{server_id}/remote-consoles": {"remote_console": {"protocol": "vnc", "type": "novnc"}},
    "/os-server-groups": {"server_group": {"name": "g", "policy": "affinity"}},
}
_WRITES = sorted(
    {
        (method.upper(), path)
        for noun in application._NOUNS
        for path, resource in noun.ROUTES
        for method in ("post", "put", "delete")
        if hasattr(resource, f"on_{method}") and path.startswith(("/servers", "/os-server-groups"))
    }
)


@pytest.mark.parametrize(("method", "path"), _WRITES)
def test_a_reader_changes_nothing(make_api: Callable[..., ServerAPI], method: str, path: str) -> None:
    api = make_api()
    server = api.active(metadata={"x": "1"}, tags=["x"])
    group = api.call("POST", "/os-server-groups", _BODIES["/os-server-groups"]).json["server_group"]["id"]
    other = dict.fromkeys(("key", "tag", "port_id", "volume_id", "share_id"), "x")
    filled = path.format(server_id=server, group_id=group, migration_id="1", **other)
    before = api.db.read(lambda conn: conn.execute(models.instances.select()).all())

    answer = api.call(method, filled, _BODIES.get(path), user="carol")

    assert answer.status_code == 403, answer.text
    assert api.db.read(lambda conn: conn.execute(models.instances.select()).all()) == before
    assert api.count(models.server_groups) == 1

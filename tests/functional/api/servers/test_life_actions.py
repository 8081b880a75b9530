# SPDX-License-Identifier: Apache-2.0
"""Actions that change what a server is without moving it: what is accepted, and what is refused with which status."""

from __future__ import annotations

from typing import Any

import pytest

from nova_lite.db import models, operations
from tests.fixtures.server_api import IMAGE, ServerAPI

# body, kind, task_state, the states that allow it
ACTIONS: list[tuple[dict[str, Any], str, str, tuple[str, ...]]] = [
    ({"pause": None}, "pause", "pausing", ("active",)),
    ({"unpause": None}, "unpause", "unpausing", ("paused",)),
    ({"suspend": None}, "suspend", "suspending", ("active",)),
    ({"resume": None}, "resume", "resuming", ("suspended",)),
    ({"rescue": None}, "rescue", "rescuing", ("active", "stopped", "error")),
    ({"unrescue": None}, "unrescue", "unrescuing", ("rescued",)),
    ({"rebuild": {"imageRef": IMAGE}}, "rebuild", "rebuilding", ("active", "stopped", "error")),
]
OFFLOAD: tuple[dict[str, Any], str, str, tuple[str, ...]] = (
    {"shelveOffload": None}, "shelveOffload", "shelving_offloading", ("shelved",)
)  # fmt: skip
AT_REST = ("active", "stopped", "paused", "suspended")
IMAGING: list[tuple[dict[str, Any], str, str, tuple[str, ...]]] = [
    ({"createImage": {"name": "i"}}, "createImage", "image_snapshot", AT_REST),
    ({"createBackup": {"name": "b", "backup_type": "daily", "rotation": 1}}, "createBackup", "image_backup", AT_REST),
]
ACTIONS += IMAGING
ACTIONS += [({"shelve": None}, "shelve", "shelving", AT_REST), OFFLOAD]
ACTIONS += [({"unshelve": None}, "unshelve", "unshelving", ("shelved", "shelved_offloaded"))]
STATES = ("active", "stopped", "paused", "suspended", "rescued", "shelved", "error", "resized", "building")


def _act(api: ServerAPI, server_id: str, action: dict[str, Any], user: str = "alice", version: str = "2.96") -> Any:
    return api.call("POST", f"/servers/{server_id}/action", action, user, version)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action[1])
def test_an_action_is_put_on_the_books_in_the_states_that_allow_it(api: ServerAPI, action: Any) -> None:
    body, kind, task_state, allowed = action
    server_id = api.create()
    for vm_state in allowed:
        api.settle(server_id, vm_state)

        answer = _act(api, server_id, body, "root" if action is OFFLOAD else "alice")

        assert answer.status_code in (200, 202), answer.text
        added = api.db.read(lambda conn: operations.get(conn, api.conductor.hints[-1][0]))
        assert added is not None
        assert (added.kind, added.status, added.instance_uuid) == (kind, "active", server_id)
        shown = api.call("GET", f"/servers/{server_id}").json["server"]
        assert shown["OS-EXT-STS:task_state"] == task_state


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action[1])
def test_every_other_state_is_a_conflict(api: ServerAPI, action: Any) -> None:
    body, kind, _task_state, allowed = action
    server_id = api.create()
    before = api.count(models.operations)
    for vm_state in STATES:
        if vm_state not in allowed:
            api.settle(server_id, vm_state)
            answer = _act(api, server_id, body, "root" if action is OFFLOAD else "alice")
            assert answer.status_code == 409, vm_state
            expected = f"Cannot '{kind}' instance {server_id} while it is in vm_state {vm_state}"
            assert answer.json["conflictingRequest"]["message"] == expected
    assert api.count(models.operations) == before


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action[1])
def test_a_server_that_something_is_done_to_is_a_conflict(api: ServerAPI, action: Any) -> None:
    body, _kind, _task_state, allowed = action
    server_id = api.create()
    api.settle(server_id, allowed[0], task_state="powering-off")

    answer = _act(api, server_id, body, "root" if action is OFFLOAD else "alice")

    assert answer.status_code == 409
    assert "in task_state powering-off" in answer.text


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action[1])
def test_who_may_not(api: ServerAPI, action: Any) -> None:
    body, _kind, _task_state, allowed = action
    server_id = api.create()
    api.settle(server_id, allowed[0])

    assert _act(api, server_id, body, "carol").status_code == 403
    assert _act(api, server_id, body, "bob").status_code == 404
    if action is OFFLOAD:
        assert _act(api, server_id, body).status_code == 403
        return
    _act(api, server_id, {"lock": None})
    if action in IMAGING:  # a lock is for what changes a server
        assert _act(api, server_id, body).status_code == 202
        return
    answer = _act(api, server_id, body)
    assert answer.status_code == 409
    assert answer.json["conflictingRequest"]["message"] == f"Instance {server_id} is locked"
    assert _act(api, server_id, body, "root").status_code in (200, 202)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action[1])
def test_a_second_name_in_the_body_is_refused(api: ServerAPI, action: Any) -> None:
    body = {**action[0], "os-stop": None}
    server_id = api.active()

    assert _act(api, server_id, body).status_code == 400


@pytest.mark.parametrize(
    ("body", "user", "status", "text"),
    [
        ({"changePassword": {"adminPass": "x"}}, "alice", 409, "guest agent is not enabled"),
        ({"changePassword": {"adminPass": 1}}, "alice", 400, "adminPass"),
        ({"changePassword": {}}, "alice", 400, "adminPass"),
        ({"changePassword": {"adminPass": "x"}}, "carol", 403, "Policy"),
        ({"changePassword": {"adminPass": "x"}}, "bob", 404, "could not be found"),
        ({"injectNetworkInfo": None}, "root", 202, ""),
        ({"resetNetwork": None}, "root", 410, "Reboot the server"),
        ({"resetNetwork": None}, "alice", 403, "Policy"),
        ({"restore": None}, "alice", 409, "vm_state active"),
        ({"injectNetworkInfo": None}, "alice", 403, "Policy"),
        ({"trigger_crash_dump": None}, "alice", 409, "cannot be made to crash"),
        ({"trigger_crash_dump": {}}, "alice", 400, "trigger_crash_dump"),
        ({"trigger_crash_dump": None}, "carol", 403, "Policy"),
    ],
)
def test_what_this_cloud_does_not_do_is_refused_in_words(
    api: ServerAPI, body: dict[str, Any], user: str, status: int, text: str
) -> None:
    server_id = api.active()

    answer = _act(api, server_id, body, user)

    assert (answer.status_code, text in answer.text) == (status, True), answer.text
    assert api.count(models.operations) == 1


@pytest.mark.parametrize("body", [{"changePassword": {"adminPass": "x"}}, {"trigger_crash_dump": None}])
def test_what_is_refused_anyway_minds_the_state(api: ServerAPI, body: dict[str, Any]) -> None:
    server_id = api.create()
    api.settle(server_id, "stopped")

    answer = _act(api, server_id, body)

    assert (answer.status_code, "while it is in vm_state stopped" in answer.text) == (409, True)


def test_a_crash_dump_is_unknown_below_2_17(api: ServerAPI) -> None:
    assert _act(api, api.active(), {"trigger_crash_dump": None}, version="2.16").status_code == 400

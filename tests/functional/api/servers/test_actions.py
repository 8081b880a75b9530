# SPDX-License-Identifier: Apache-2.0
"""Actions on servers, and what is remembered of them."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db import instances, models, operations
from nova_lite.db.instances import Caller
from tests.fixtures.server_api import ServerAPI


def _act(api: ServerAPI, server_id: str, action: dict[str, Any], user: str = "alice", version: str = "2.96") -> int:
    return int(api.call("POST", f"/servers/{server_id}/action", action, user, version).status_code)


def _shown(api: ServerAPI, server_id: str, user: str = "alice") -> dict[str, Any]:
    return dict(api.call("GET", f"/servers/{server_id}", user=user).json["server"])


@pytest.mark.parametrize(
    ("vm_state", "action", "kind", "task_state", "status"),
    [
        ("active", {"os-stop": None}, "stop", "powering-off", "ACTIVE"),
        ("stopped", {"os-start": None}, "start", "powering-on", "SHUTOFF"),
        ("active", {"reboot": {"type": "SOFT"}}, "reboot", "rebooting", "REBOOT"),
        ("active", {"reboot": {"type": "Hard"}}, "reboot", "rebooting_hard", "HARD_REBOOT"),
        ("stopped", {"reboot": {"type": "HARD"}}, "reboot", "rebooting_hard", "SHUTOFF"),
        ("error", {"os-stop": None}, "stop", "powering-off", "ERROR"),
    ],
)
def test_an_action_is_put_on_the_books_and_hinted_at(
    api: ServerAPI, vm_state: str, action: dict[str, Any], kind: str, task_state: str, status: str
) -> None:
    server_id = api.create()
    api.settle(server_id, vm_state)

    assert _act(api, server_id, action) == 202

    shown = _shown(api, server_id)
    assert (shown["OS-EXT-STS:task_state"], shown["status"]) == (task_state, status)
    added = api.db.read(lambda conn: operations.get(conn, api.conductor.hints[-1][0]))
    assert added is not None
    assert (added.kind, added.status, added.instance_uuid) == (kind, "active", server_id)
    if kind == "reboot":
        assert added.arguments == {"reboot_type": action["reboot"]["type"].upper()}


@pytest.mark.parametrize(
    ("vm_state", "action"),
    [
        ("stopped", {"os-stop": None}),
        ("active", {"os-start": None}),
        ("stopped", {"reboot": {"type": "SOFT"}}),
        ("building", {"reboot": {"type": "HARD"}}),
    ],
)
def test_an_action_that_the_state_does_not_allow_is_a_conflict(
    api: ServerAPI, vm_state: str, action: dict[str, Any]
) -> None:
    server_id = api.create()
    api.settle(server_id, vm_state)

    answer = api.call("POST", f"/servers/{server_id}/action", action)

    assert answer.status_code == 409
    assert f"while it is in vm_state {vm_state}" in answer.json["conflictingRequest"]["message"]
    assert api.count(models.operations) == 1


def test_a_second_action_waits_for_the_first(api: ServerAPI) -> None:
    server_id = api.active()
    _act(api, server_id, {"os-stop": None})

    assert _act(api, server_id, {"os-stop": None}) == 409
    assert _act(api, server_id, {"reboot": {"type": "HARD"}}) == 409


def test_a_hard_reboot_interrupts_a_soft_one(api: ServerAPI) -> None:
    server_id = api.active()
    _act(api, server_id, {"reboot": {"type": "SOFT"}})

    assert _act(api, server_id, {"reboot": {"type": "HARD"}}) == 202

    rows = api.db.read(lambda conn: operations.get_many(conn, [h[0] for h in api.conductor.hints[1:]]))
    assert [row.status for row in rows] == ["cancelled", "active"]


def test_a_server_on_no_host_is_not_ready(api: ServerAPI) -> None:
    server_id = api.create()
    api.settle(server_id, "error", None)

    assert _act(api, server_id, {"os-stop": None}) == 409
    assert _act(api, server_id, {"os-getConsoleOutput": {}}) == 409


def test_an_action_is_refused_while_the_host_does_not_answer(api: ServerAPI) -> None:
    server_id = api.active()
    old = sa.text("'2000-01-01 00:00:00.000000'")
    api.db.write(lambda conn: conn.execute(sa.update(models.services).values(last_seen_at=old)))

    answer = api.call("POST", f"/servers/{server_id}/action", {"os-stop": None})

    assert answer.status_code == 409
    assert "host1" not in answer.text, "users are not told which host it is"
    assert _shown(api, server_id)["OS-EXT-STS:task_state"] is None


def test_an_action_run_again_finds_its_own_work(api: ServerAPI) -> None:
    server_id = api.active()
    caller = Caller(api.project["alice"], api.user["alice"], "req-once")

    def begin(conn: sa.Connection) -> str:
        return instances.begin_action(
            conn, server_id, kind="stop", task_state="powering-off", caller=caller, vm_states=("active",)
        )

    assert api.db.write(begin) == api.db.write(begin)
    assert api.count(models.operations) == 2


@pytest.mark.parametrize(
    "action",
    [
        {},
        [],
        {"resize": {"flavorRef": "1"}},
        {"os-nothing": None},
        {"os-stop": None, "os-start": None},
        {"reboot": None},
        {"reboot": {"type": "GENTLE"}},
        {"reboot": {"type": "SOFT", "x": 1}},
        {"lock": {"locked_reason": ""}},
        {"lock": {"locked_reason": "x" * 256}},
        {"os-getConsoleOutput": {"length": "many"}},
        {"os-getConsoleOutput": {"length": -2}},
        {"os-resetState": {"state": "shiny"}},
    ],
)
def test_bad_actions_are_refused(api: ServerAPI, action: Any) -> None:
    server_id = api.active()

    answer = api.call("POST", f"/servers/{server_id}/action", action, user="root")

    assert answer.status_code == 400
    assert answer.json["badRequest"]["message"]


def test_a_locked_server_refuses_its_owner_and_not_administrators(api: ServerAPI) -> None:
    server_id = api.active()

    assert _act(api, server_id, {"lock": {"locked_reason": "do not touch"}}) == 202

    shown = _shown(api, server_id)
    assert (shown["locked"], shown["locked_reason"]) == (True, "do not touch")
    assert _act(api, server_id, {"os-stop": None}) == 409
    assert api.call("DELETE", f"/servers/{server_id}").status_code == 409
    assert api.call("POST", f"/servers/{server_id}/metadata", {"metadata": {"a": "b"}}).status_code == 409
    assert _act(api, server_id, {"os-stop": None}, "root") == 202
    assert _act(api, server_id, {"unlock": None}) == 202
    assert _shown(api, server_id)["locked_reason"] is None


def test_what_an_administrator_locked_its_owner_cannot_unlock(api: ServerAPI) -> None:
    server_id = api.active()
    _act(api, server_id, {"lock": None}, "root")

    assert _act(api, server_id, {"unlock": None}) == 403
    assert _act(api, server_id, {"unlock": None}, "root") == 202
    assert _shown(api, server_id)["locked"] is False


def test_console_output_comes_from_the_servers_host(api: ServerAPI) -> None:
    server_id = api.active()

    answer = api.call("POST", f"/servers/{server_id}/action", {"os-getConsoleOutput": {"length": "5"}})

    assert (answer.status_code, answer.json) == (200, {"output": "booting[0m\nlogin:"})
    api.call("POST", f"/servers/{server_id}/action", {"os-getConsoleOutput": {}})
    assert api.compute.asked == [("compute-1", server_id, 5), ("compute-1", server_id, None)]


def test_resetting_the_state_is_for_administrators(api: ServerAPI) -> None:
    server_id = api.active()
    _act(api, server_id, {"os-stop": None})

    assert _act(api, server_id, {"os-resetState": {"state": "error"}}) == 403
    assert _act(api, server_id, {"os-resetState": {"state": "error"}}, "root") == 202

    shown = _shown(api, server_id)
    assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("ERROR", None)
    active = sa.select(sa.func.count()).where(models.operations.c.status == "active")
    assert api.db.read(lambda conn: conn.scalar(active)) == 0


def test_readers_cannot_act(api: ServerAPI) -> None:
    server_id = api.active()

    assert _act(api, server_id, {"os-stop": None}, "carol") == 403


def test_the_history_of_a_server(api: ServerAPI) -> None:
    server_id = api.active()
    answer = api.call("POST", f"/servers/{server_id}/action", {"os-stop": None})
    request_id = answer.headers["X-OpenStack-Request-ID"]

    history = api.call("GET", f"/servers/{server_id}/os-instance-actions").json["instanceActions"]

    assert [action["action"] for action in history] == ["stop", "create"]
    assert history[0]["request_id"] == request_id
    assert set(history[0]) == {
        "action", "instance_uuid", "request_id", "user_id", "project_id", "start_time", "message", "updated_at",
    }  # fmt: skip
    old = api.call("GET", f"/servers/{server_id}/os-instance-actions", version="2.57").json["instanceActions"]
    assert "updated_at" not in old[0]


@pytest.mark.parametrize(
    ("version", "user", "fields"),
    [
        ("2.50", "alice", None),
        ("2.50", "root", {"traceback"}),
        ("2.51", "alice", set()),
        ("2.62", "alice", {"hostId"}),
        ("2.62", "root", {"hostId", "host", "traceback"}),
        ("2.84", "alice", {"hostId"}),
        ("2.84", "root", {"hostId", "host", "traceback", "details"}),
    ],
)
def test_events_are_shown_as_version_and_policy_say(
    api: ServerAPI, version: str, user: str, fields: set[str] | None
) -> None:
    answer = api.call("POST", "/servers", {"server": _minimal()})
    server_id, request_id = answer.json["server"]["id"], answer.headers["X-OpenStack-Request-ID"]
    step = {"operation_id": 1, "event": "compute__do_build_and_run_instance", "host": "host1", "result": "Success"}
    api.db.write(lambda conn: conn.execute(sa.insert(models.operation_steps).values(**step)))

    shown = api.call("GET", f"/servers/{server_id}/os-instance-actions/{request_id}", user=user, version=version)

    action = shown.json["instanceAction"]
    if fields is None:
        assert "events" not in action
    else:
        assert set(action["events"][0]) == {"event", "start_time", "finish_time", "result"} | fields


def _minimal() -> dict[str, str]:
    return {"name": "s", "imageRef": "11111111-1111-4111-8111-111111111111", "flavorRef": "1", "networks": "none"}


def test_the_history_comes_in_pages(api: ServerAPI) -> None:
    server_id = api.active()
    _act(api, server_id, {"lock": None})
    _act(api, server_id, {"unlock": None})
    path = f"/servers/{server_id}/os-instance-actions?limit=2"

    first = api.call("GET", path).json
    rest = api.call("GET", first["links"][0]["href"].split("/v2.1", 1)[1]).json

    assert [a["action"] for a in first["instanceActions"]] == ["unlock", "lock"]
    assert [a["action"] for a in rest["instanceActions"]] == ["create"]
    assert "links" not in rest


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("marker=req-nope", 400),
        ("limit=x", 400),
        ("colour=x", 400),
        ("changes-since=now", 400),
        ("changes-since=2026-01-02T00:00:00Z&changes-before=2026-01-01T00:00:00Z", 400),
        ("changes-since=2000-01-01T00:00:00Z", 200),
    ],
)
def test_queries_of_the_history(api: ServerAPI, query: str, status: int) -> None:
    server_id = api.create()

    assert api.call("GET", f"/servers/{server_id}/os-instance-actions?{query}").status_code == status


def test_an_unknown_action_is_not_found(api: ServerAPI) -> None:
    server_id = api.create()

    assert api.call("GET", f"/servers/{server_id}/os-instance-actions/req-nope").status_code == 404


@pytest.mark.parametrize("vm_state", ["active", "error"])
def test_force_delete_is_a_delete(api: ServerAPI, vm_state: str) -> None:
    server_id = api.create()
    api.settle(server_id, vm_state)

    assert _act(api, server_id, {"forceDelete": None}, "carol") == 403
    assert _act(api, server_id, {"forceDelete": None}) == 202

    assert _shown(api, server_id)["OS-EXT-STS:task_state"] == "deleting"
    kind = sa.select(models.operations.c.kind).order_by(models.operations.c.id.desc())
    assert api.db.read(lambda conn: conn.execute(kind).scalars().first()) == "delete"


def test_no_guest_hands_in_a_password(api: ServerAPI) -> None:
    path = f"/servers/{api.active()}/os-server-password"

    assert api.call("GET", path, user="carol").json == {"password": ""}
    assert api.call("DELETE", path, user="carol").status_code == 403
    assert api.call("DELETE", path).status_code == 204
    assert api.call("GET", path, user="bob").status_code == 404

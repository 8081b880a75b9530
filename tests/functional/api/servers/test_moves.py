# SPDX-License-Identifier: Apache-2.0
"""Moves of servers as they are accepted: resize, confirm, revert, migrate, live-migrate, evacuate."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite import exception, policy
from nova_lite.db import flavors, instances, models, moves, operations, registry
from tests.fixtures.server_api import ServerAPI, add_flavor

LONG_AGO = sa.text("'2000-01-01 00:00:00.000000'")
LIVE = {"host": None, "block_migration": "auto"}


@pytest.fixture
def api(make_api: Callable[..., ServerAPI]) -> ServerAPI:
    """An api with two hosts, and the flavors big, huge and private."""
    made = make_api()

    def unit(conn: sa.Connection) -> None:
        add_flavor(conn, "big", "m1.big", 1024, vcpus=2, root_gb=10)
        add_flavor(conn, "private", "m1.private", 1024, is_public=False)
        registry.register_service(conn, registry.COMPUTE, "host2", "compute-2")

    made.db.write(unit)
    return made


def _act(api: ServerAPI, server_id: str, action: dict[str, Any], user: str = "root", version: str = "2.96") -> Any:
    return api.call("POST", f"/servers/{server_id}/action", action, user, version)


def _shown(api: ServerAPI, server_id: str) -> dict[str, Any]:
    return dict(api.call("GET", f"/servers/{server_id}", user="root").json["server"])


def _server(api: ServerAPI, vm_state: str = "active", **values: Any) -> str:
    server_id = api.create()
    api.settle(server_id, vm_state, node_id=1, **values)
    return server_id


def _migrations(api: ServerAPI) -> list[Any]:
    return api.db.read(lambda conn: list(conn.execute(sa.select(models.migrations))))


def _operation(api: ServerAPI) -> operations.Operation:
    """Return the operation that was hinted at last."""
    found = api.db.read(lambda conn: operations.get(conn, api.conductor.hints[-1][0]))
    assert found is not None
    return found


def _set_service(api: ServerAPI, host: str = "host1", **values: Any) -> None:
    mine = sa.update(models.services).where(models.services.c.host == host)
    api.db.write(lambda conn: conn.execute(mine.values(**values)))


def _force_down(api: ServerAPI) -> None:
    _set_service(api, forced_down=True)


def _assert_nothing_happened(api: ServerAPI, server_id: str, task_state: str | None = None) -> None:
    assert api.count(models.migrations) == 0
    assert api.count(models.operations) == 1, "only the create"
    assert _shown(api, server_id)["OS-EXT-STS:task_state"] == task_state
    usage = sa.select(models.quota_usages.c.cores, models.quota_usages.c.ram)
    assert api.db.read(lambda conn: conn.execute(usage).one()) == (1, 512)


@pytest.mark.parametrize(
    ("action", "vm_state", "kind", "move_type", "status"),
    [
        ({"resize": {"flavorRef": "big"}}, "active", "resize", "resize", "RESIZE"),
        ({"resize": {"flavorRef": "big"}}, "stopped", "resize", "resize", "RESIZE"),
        ({"migrate": None}, "active", "migrate", "migration", "RESIZE"),
        ({"migrate": {}}, "stopped", "migrate", "migration", "RESIZE"),
        ({"os-migrateLive": LIVE}, "active", "live-migration", "live-migration", "MIGRATING"),
        ({"os-migrateLive": LIVE}, "paused", "live-migration", "live-migration", "MIGRATING"),
    ],
)
def test_a_move_is_put_on_the_books_and_hinted_at(
    api: ServerAPI, action: dict[str, Any], vm_state: str, kind: str, move_type: str, status: str
) -> None:
    server_id = _server(api, vm_state)

    answer = _act(api, server_id, action)

    assert (answer.status_code, answer.content) == (202, b"")
    assert _shown(api, server_id)["status"] == status
    assert (_operation(api).kind, _operation(api).status) == (kind, "active")
    (move,) = _migrations(api)
    assert (move.type, move.status, move.source_compute, move.old_vm_state) == (
        move_type,
        "accepted",
        "host1",
        vm_state,
    )
    assert _operation(api).arguments["host"] is None


# -- resize


def test_a_member_resizes_and_pays_for_what_is_more(api: ServerAPI) -> None:
    server_id = _server(api)

    assert _act(api, server_id, {"resize": {"flavorRef": "big"}}, "alice").status_code == 202

    (move,) = _migrations(api)
    assert json.loads(move.new_flavor)["flavorid"] == "big"
    assert json.loads(move.old_flavor)["flavorid"] == "1"
    usage = sa.select(models.quota_usages.c.cores, models.quota_usages.c.ram)
    assert api.db.read(lambda conn: conn.execute(usage).one()) == (2, 1024)


def test_a_resize_beyond_the_quota_is_forbidden(make_api: Callable[..., ServerAPI]) -> None:
    api = make_api(quota__cores=1)
    api.db.write(lambda conn: add_flavor(conn, "big", "m1.big", 1024, vcpus=2))
    server_id = _server(api)

    answer = _act(api, server_id, {"resize": {"flavorRef": "big"}}, "alice")

    assert answer.status_code == 403
    assert "Quota exceeded for cores" in answer.text
    _assert_nothing_happened(api, server_id)


def test_a_resize_may_say_who_partitions_the_disk(api: ServerAPI) -> None:
    server_id = _server(api)

    _act(api, server_id, {"resize": {"flavorRef": "big", "OS-DCF:diskConfig": "AUTO"}}, "alice")

    assert _shown(api, server_id)["OS-DCF:diskConfig"] == "AUTO"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"disabled": True}, "Flavor x could not be found."),
        ({"is_public": False}, "Flavor x could not be found."),
        ({"root_gb": 0}, "Resize to zero disk flavor is not allowed."),
        ({"root_gb": 4}, "disk is too small"),
        ({"ephemeral_gb": 1}, "ephemeral disk is too small"),
        ({"memory_mb": 63}, "memory is too small"),
    ],
)
def test_sizes_that_a_server_cannot_have(api: ServerAPI, values: dict[str, Any], words: str) -> None:
    """Each flavor is as it should be but for one thing; without that it would do, as the end shows."""
    good = {"memory_mb": 64, "root_gb": 5, "ephemeral_gb": 2, "vcpus": 1}
    present = {"flavorid": "1", "name": "m", "vcpus": 1, "memory_mb": 512, "root_gb": 5, "ephemeral_gb": 2}
    image = {"id": "i", "name": "i", "status": "active", "min_ram": 64}
    server_id = _server(api, flavor=json.dumps(present), image=json.dumps(image))
    api.db.write(lambda conn: add_flavor(conn, "x", "x", **{**good, **values}))

    answer = _act(api, server_id, {"resize": {"flavorRef": "x"}}, "alice")

    assert answer.status_code == 400
    assert words in answer.json["badRequest"]["message"]
    _assert_nothing_happened(api, server_id)
    api.db.write(lambda conn: add_flavor(conn, "y", "y", **good))
    assert _act(api, server_id, {"resize": {"flavorRef": "y"}}, "alice").status_code == 202


@pytest.mark.parametrize(("flavorid", "words"), [("1", "must change flavor"), ("nope", "Flavor nope could not be")])
def test_flavors_that_are_no_other_size(api: ServerAPI, flavorid: str, words: str) -> None:
    server_id = _server(api)

    answer = _act(api, server_id, {"resize": {"flavorRef": flavorid}}, "alice")

    assert answer.status_code == 400
    assert words in answer.json["badRequest"]["message"]


def test_a_private_flavor_is_for_those_who_may_use_it(api: ServerAPI) -> None:
    server_id = _server(api)
    resize = {"resize": {"flavorRef": "private"}}
    assert _act(api, server_id, resize, "alice").status_code == 400

    api.db.write(lambda conn: flavors.add_project(conn, "private", api.project["alice"], allow_public=False))

    assert _act(api, server_id, resize, "alice").status_code == 202


# -- confirm and revert


def _resized(api: ServerAPI) -> str:
    """Make a server that waits to be confirmed, as the conductor would have left it."""
    server_id = _server(api)
    assert _act(api, server_id, {"resize": {"flavorRef": "big"}}).status_code == 202
    api.settle(server_id, "resized")
    api.db.write(lambda conn: conn.execute(sa.update(models.migrations).values(status="finished")))
    return server_id


@pytest.mark.parametrize(
    ("action", "code", "move_status", "status"),
    [("confirmResize", 204, "confirming", "VERIFY_RESIZE"), ("revertResize", 202, "reverting", "REVERT_RESIZE")],
)
def test_a_resize_is_ended(api: ServerAPI, action: str, code: int, move_status: str, status: str) -> None:
    server_id = _resized(api)
    assert _shown(api, server_id)["status"] == "VERIFY_RESIZE"

    answer = _act(api, server_id, {action: None}, "alice")

    assert (answer.status_code, answer.content) == (code, b"")
    assert _operation(api).kind == action
    assert _migrations(api)[0].status == move_status
    assert _shown(api, server_id)["status"] == status


@pytest.mark.parametrize("action", ["confirmResize", "revertResize"])
def test_what_was_not_resized_cannot_be_ended(api: ServerAPI, action: str) -> None:
    active, odd = _server(api), _server(api, "resized")

    assert _act(api, active, {action: None}, "alice").status_code == 409
    answer = _act(api, odd, {action: None}, "alice")

    assert answer.status_code == 400
    assert answer.json["badRequest"]["message"] == "Instance has not been resized."
    assert api.count(models.operations) == 2


def test_a_resize_is_ended_once(api: ServerAPI) -> None:
    server_id = _resized(api)

    assert _act(api, server_id, {"revertResize": None}, "alice").status_code == 202
    assert _act(api, server_id, {"confirmResize": None}, "alice").status_code == 409
    assert _migrations(api)[0].status == "reverting"


# -- where to


@pytest.mark.parametrize(
    ("action", "version"),
    [
        ({"migrate": {"host": "host2"}}, "2.56"),
        ({"os-migrateLive": {"host": "host2", "block_migration": False, "disk_over_commit": False}}, "2.1"),
        ({"os-migrateLive": {"host": "host2", "block_migration": "auto"}}, "2.96"),
        ({"evacuate": {"host": "host2"}}, "2.96"),
    ],
)
def test_a_host_may_be_asked_for(api: ServerAPI, action: dict[str, Any], version: str) -> None:
    server_id = _server(api)
    if "evacuate" in action:
        _force_down(api)

    assert _act(api, server_id, action, version=version).status_code in (200, 202)

    assert _operation(api).arguments["host"] == "host2"


@pytest.mark.parametrize(
    ("action", "host", "code", "words"),
    [
        ("migrate", "nowhere", 400, "Compute host nowhere could not be found."),
        ("migrate", "host1", 400, "can't be the same"),
        ("os-migrateLive", "nowhere", 400, "Compute host nowhere could not be found."),
        ("os-migrateLive", "host1", 400, "can't be the same"),
        ("evacuate", "nowhere", 404, "Compute host nowhere could not be found."),
        ("evacuate", "host1", 400, "can't be the same"),
    ],
)
def test_hosts_that_a_server_cannot_go_to(api: ServerAPI, action: str, host: str, code: int, words: str) -> None:
    server_id = _server(api)
    if action == "evacuate":
        _force_down(api)
    body = {**LIVE, "host": host} if action == "os-migrateLive" else {"host": host}

    answer = _act(api, server_id, {action: body})

    assert answer.status_code == code
    assert words in answer.text
    _assert_nothing_happened(api, server_id)


def test_below_256_a_migration_goes_where_the_scheduler_says(api: ServerAPI) -> None:
    assert _act(api, _server(api), {"migrate": {"host": "nowhere"}}, version="2.55").status_code == 202

    assert _operation(api).arguments["host"] is None


# -- what live migrations are told


@pytest.mark.parametrize(
    ("version", "value", "told"),
    [
        ("2.1", {"block_migration": True, "disk_over_commit": "no"}, {"block_migration": True}),
        ("2.24", {"block_migration": "False", "disk_over_commit": True}, {"block_migration": False}),
        ("2.25", {"block_migration": "auto"}, {"block_migration": "auto"}),
        ("2.30", {"block_migration": True, "host": "host2", "force": True}, {"block_migration": True, "force": True}),
        ("2.67", {"block_migration": True, "force": "false"}, {"block_migration": True}),
        ("2.68", {"block_migration": "no"}, {"block_migration": False}),
    ],
)
def test_what_a_live_migration_is_told(
    api: ServerAPI, version: str, value: dict[str, Any], told: dict[str, Any]
) -> None:
    answer = _act(api, _server(api), {"os-migrateLive": {"host": None, **value}}, version=version)

    assert answer.status_code == 202, answer.text
    arguments = _operation(api).arguments
    del arguments["host"], arguments["migration"]
    over_commit = arguments.pop("disk_over_commit", None)
    assert arguments == told
    assert over_commit == (value["disk_over_commit"] is True if "disk_over_commit" in value else None)


# -- evacuate


@pytest.mark.parametrize("vm_state", ["active", "stopped", "error"])
@pytest.mark.parametrize("task_state", [None, "powering-off", "rebooting"])
def test_servers_of_a_fenced_host_are_evacuated_whatever_they_did(
    api: ServerAPI, vm_state: str, task_state: str | None
) -> None:
    server_id = _server(api, vm_state, task_state=task_state)
    _force_down(api)

    answer = _act(api, server_id, {"evacuate": {}})

    assert (answer.status_code, answer.content) == (200, b"")
    assert (_operation(api).kind, _migrations(api)[0].type) == ("evacuate", "evacuation")
    assert _shown(api, server_id)["status"] == "REBUILD"


@pytest.mark.parametrize(
    ("service", "code", "words"),
    [
        ({}, 400, "Compute service of host1 is still in use."),
        ({"last_seen_at": LONG_AGO}, 409, "force its service down"),
        ({"binary": "nova-other"}, 404, "Compute host host1 could not be found."),
    ],
)
def test_nothing_is_evacuated_from_a_host_that_nobody_says_is_dead(
    api: ServerAPI, service: dict[str, Any], code: int, words: str
) -> None:
    server_id = _server(api)
    _set_service(api, **service)

    answer = _act(api, server_id, {"evacuate": {"host": "host2"}})

    assert answer.status_code == code
    assert words in answer.text
    _assert_nothing_happened(api, server_id)


def test_a_server_that_comes_to_a_living_host_meanwhile_is_looked_at_again(
    api: ServerAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It moves between the look at its host and the lock on its row, once."""
    server_id, begin = _server(api), moves.begin
    _force_down(api)
    attempts: list[str] = []

    def late_begin(conn: sa.Connection, *args: Any, **more: Any) -> str:
        attempts.append(server_id)
        if len(attempts) == 1:
            instances.update(conn, server_id, host="host2")
        return begin(conn, *args, **more)

    monkeypatch.setattr(moves, "begin", late_begin)

    assert _act(api, server_id, {"evacuate": {}}).status_code == 200
    assert len(attempts) == 2
    assert _migrations(api)[0].source_compute == "host1"


@pytest.mark.parametrize(
    ("version", "value", "told"),
    [
        ("2.1", {"onSharedStorage": True}, {"on_shared_storage": True}),
        ("2.13", {"onSharedStorage": "False"}, {"on_shared_storage": False}),
        ("2.14", {}, {}),
        ("2.29", {"force": True, "host": "host2"}, {"force": True}),
        ("2.67", {"force": False}, {}),
        ("2.94", {}, {}),
        ("2.95", {}, {"target_state": "stopped"}),
    ],
)
def test_what_an_evacuation_is_told(api: ServerAPI, version: str, value: dict[str, Any], told: dict[str, Any]) -> None:
    server_id = _server(api)
    _force_down(api)

    assert _act(api, server_id, {"evacuate": value}, version=version).status_code == 200

    arguments = _operation(api).arguments
    del arguments["host"], arguments["migration"]
    assert arguments == told


@pytest.mark.parametrize(
    ("version", "value", "password"),
    [
        ("2.13", {"onSharedStorage": False, "adminPass": "secret"}, "secret"),
        ("2.13", {"onSharedStorage": True}, None),
        ("2.14", {"adminPass": "secret"}, ""),
    ],
)
def test_the_password_is_answered_below_214(
    api: ServerAPI, version: str, value: dict[str, Any], password: str | None
) -> None:
    server_id = _server(api)
    _force_down(api)

    answer = _act(api, server_id, {"evacuate": value}, version=version)

    assert answer.status_code == 200
    if password == "":
        assert answer.content == b""
    else:
        assert answer.json == {"adminPass": password}
    assert "secret" not in json.dumps(_operation(api).arguments)


def test_a_password_is_made_for_who_gives_none(api: ServerAPI) -> None:
    server_id = _server(api)
    _force_down(api)

    answer = _act(api, server_id, {"evacuate": {"onSharedStorage": False}}, version="2.1")

    assert len(answer.json["adminPass"]) == 12


# -- what is refused


@pytest.mark.parametrize(
    ("version", "action"),
    [
        ("2.96", {"resize": None}),
        ("2.96", {"resize": {}}),
        ("2.96", {"resize": {"flavorRef": ""}}),
        ("2.96", {"resize": {"flavorRef": ["big"]}}),
        ("2.96", {"resize": {"flavorRef": "big", "x": 1}}),
        ("2.96", {"resize": {"flavorRef": "big", "OS-DCF:diskConfig": "auto"}}),
        ("2.96", {"resize": {"flavorRef": "big"}, "migrate": None}),
        ("2.96", {"confirmResize": None, "x": 1}),
        ("2.56", {"migrate": {"host": ""}}),
        ("2.56", {"migrate": {"host": "host2 "}}),
        ("2.56", {"migrate": {"host": "host2", "force": True}}),
        ("2.56", {"migrate": "host2"}),
        ("2.1", {"os-migrateLive": {"host": None, "block_migration": False}}),
        ("2.1", {"os-migrateLive": {"block_migration": False, "disk_over_commit": False}}),
        ("2.24", {"os-migrateLive": {**LIVE, "disk_over_commit": False}}),
        ("2.25", {"os-migrateLive": {"host": None, "block_migration": True, "disk_over_commit": False}}),
        ("2.25", {"os-migrateLive": {"host": None, "block_migration": "perhaps"}}),
        ("2.29", {"os-migrateLive": {**LIVE, "host": "host2", "force": True}}),
        ("2.30", {"os-migrateLive": {**LIVE, "force": True}}),
        ("2.68", {"os-migrateLive": {**LIVE, "host": "host2", "force": True}}),
        ("2.96", {"os-migrateLive": None}),
        ("2.13", {"evacuate": {}}),
        ("2.13", {"evacuate": {"onSharedStorage": True, "adminPass": "secret"}}),
        ("2.14", {"evacuate": {"onSharedStorage": False}}),
        ("2.28", {"evacuate": {"host": "host2", "force": True}}),
        ("2.29", {"evacuate": {"force": True}}),
        ("2.68", {"evacuate": {"host": "host2", "force": True}}),
        ("2.96", {"evacuate": None}),
        ("2.96", {"evacuate": {"host": None}}),
        ("2.96", {"evacuate": {"adminPass": 1}}),
    ],
)
def test_bad_bodies_are_refused(api: ServerAPI, version: str, action: dict[str, Any]) -> None:
    server_id = _server(api)
    if "evacuate" in action:
        _force_down(api)

    answer = _act(api, server_id, action, version=version)

    assert answer.status_code == 400, answer.text
    assert answer.json["badRequest"]["message"]
    _assert_nothing_happened(api, server_id)


_MOVES: list[dict[str, Any]] = [
    {"resize": {"flavorRef": "big"}},
    {"migrate": None},
    {"os-migrateLive": LIVE},
    {"evacuate": {}},
]


def _name(action: dict[str, Any]) -> str:
    return next(iter(action))


@pytest.mark.parametrize("action", _MOVES, ids=_name)
@pytest.mark.parametrize(
    ("vm_state", "task_state", "refused"),
    [
        ("building", None, {"resize", "migrate", "os-migrateLive", "evacuate"}),
        ("paused", None, {"resize", "migrate", "evacuate"}),
        ("stopped", None, {"os-migrateLive"}),
        ("error", None, {"resize", "migrate", "os-migrateLive"}),
        ("suspended", None, {"resize", "migrate", "os-migrateLive", "evacuate"}),
        ("resized", None, {"resize", "migrate", "os-migrateLive", "evacuate"}),
        ("active", "rebooting", {"resize", "migrate", "os-migrateLive"}),
    ],
)
def test_states_that_servers_are_moved_from(
    api: ServerAPI, action: dict[str, Any], vm_state: str, task_state: str | None, refused: set[str]
) -> None:
    server_id = _server(api, vm_state, task_state=task_state)
    if "evacuate" in action:
        _force_down(api)

    answer = _act(api, server_id, action)

    if _name(action) in refused:
        assert answer.status_code == 409, answer.text
        _assert_nothing_happened(api, server_id, task_state)
    else:
        assert answer.status_code < 300, answer.text
        assert api.count(models.migrations) == 1


@pytest.mark.parametrize("action", _MOVES, ids=_name)
def test_a_server_moves_once_at_a_time(api: ServerAPI, action: dict[str, Any]) -> None:
    server_id = _server(api)
    _act(api, server_id, {"migrate": None})
    if "evacuate" in action:
        _force_down(api)

    assert _act(api, server_id, action).status_code == 409
    assert api.count(models.migrations) == 1


@pytest.mark.parametrize("action", _MOVES, ids=_name)
def test_a_server_on_no_host_does_not_move(api: ServerAPI, action: dict[str, Any]) -> None:
    server_id = api.create()
    api.settle(server_id, "error" if "evacuate" in action else "active", None)

    assert _act(api, server_id, action).status_code == 409
    _assert_nothing_happened(api, server_id)


@pytest.mark.parametrize("action", _MOVES[:3], ids=_name)
def test_a_host_that_does_not_answer_gives_no_server_away(api: ServerAPI, action: dict[str, Any]) -> None:
    server_id = _server(api)
    _set_service(api, last_seen_at=LONG_AGO)

    answer = _act(api, server_id, action)

    assert answer.status_code == 409
    assert "host1" not in answer.text, "users are not told which host it is"
    _assert_nothing_happened(api, server_id)


def test_a_locked_server_refuses_its_owner_and_not_administrators(api: ServerAPI) -> None:
    server_id = _resized(api)
    _act(api, server_id, {"lock": None}, "alice")

    assert _act(api, server_id, {"revertResize": None}, "alice").status_code == 409
    assert _act(api, server_id, {"confirmResize": None}, "alice").status_code == 409
    assert _migrations(api)[0].status == "finished"
    assert _act(api, server_id, {"revertResize": None}).status_code == 202


def test_a_locked_server_is_not_resized(api: ServerAPI) -> None:
    server_id = _server(api)
    _act(api, server_id, {"lock": None}, "alice")

    answer = _act(api, server_id, {"resize": {"flavorRef": "big"}}, "alice")

    assert answer.status_code == 409
    assert "is locked" in answer.text
    assert _act(api, server_id, {"migrate": None}).status_code == 202


@pytest.mark.parametrize(
    ("action", "codes"),
    [
        ({"resize": {"flavorRef": "big"}}, {"alice": 202, "carol": 403, "bob": 404}),
        ({"migrate": None}, {"root": 202, "alice": 403, "carol": 403, "bob": 404}),
        ({"migrate": {"host": "host2"}}, {"root": 202, "alice": 403}),
        ({"os-migrateLive": LIVE}, {"root": 202, "alice": 403, "carol": 403, "bob": 404}),
        ({"evacuate": {}}, {"root": 200, "alice": 403, "carol": 403, "bob": 404}),
    ],
)
def test_who_may_move_servers(api: ServerAPI, action: dict[str, Any], codes: dict[str, int]) -> None:
    for user, code in codes.items():
        server_id = _server(api)
        _set_service(api, forced_down="evacuate" in action)

        assert _act(api, server_id, action, user).status_code == code, user


@pytest.mark.parametrize("action", ["confirmResize", "revertResize"])
def test_who_may_end_moves(api: ServerAPI, action: str) -> None:
    server_id = _resized(api)

    assert _act(api, server_id, {action: None}, "bob").status_code == 404
    assert _act(api, server_id, {action: None}, "carol").status_code == 403
    assert _act(api, server_id, {action: None}, "alice").status_code in (202, 204)


def test_naming_the_host_is_a_policy_of_its_own(api: ServerAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    authorize = policy.authorize

    def refuse_hosts(context: Any, action: str, target: Any = None) -> None:
        if action.endswith(":host"):
            raise exception.Forbidden(action=action)
        authorize(context, action, target)

    monkeypatch.setattr(policy, "authorize", refuse_hosts)
    server_id = _server(api)

    migrated = _act(api, server_id, {"migrate": {"host": "host2"}})
    live_migrated = _act(api, server_id, {"os-migrateLive": {**LIVE, "host": "host2"}})

    assert (migrated.status_code, live_migrated.status_code) == (403, 403)
    assert "os-migrate-server:migrate:host" in migrated.text
    assert "os-migrate-server:migrate_live:host" in live_migrated.text
    assert _act(api, server_id, {"migrate": None}).status_code == 202


def test_the_history_names_moves_as_nova_does(api: ServerAPI) -> None:
    server_id = _resized(api)
    _act(api, server_id, {"confirmResize": None}, "alice")

    history = api.call("GET", f"/servers/{server_id}/os-instance-actions").json["instanceActions"]

    assert [action["action"] for action in history] == ["confirmResize", "resize", "create"]

# SPDX-License-Identifier: Apache-2.0
"""Live migrations: done, aborted, completed by force, failed at each step."""

from __future__ import annotations

import pytest

from tests.functional.moves.conftest import Movers

LIVE = {"host": None, "block_migration": "auto"}


def test_a_running_server_changes_its_host(movers: Movers) -> None:
    server = movers.boot(host="host1")
    movers.act(server, "os-migrateLive", {**LIVE, "host": "host2"})
    assert movers.running(server)["memory_total_bytes"] == 512 << 20
    # The doubled allocation is there as long as the guest is between the two hosts (Launchpad 1707071).
    assert movers.used() == {"host1": 1, "host2": 1, "host3": 0}
    movers.agree()
    assert movers.settled(server) == ("ACTIVE", "host2")
    movers.only_on(server, "host2")
    assert movers.used() == {"host1": 0, "host2": 1, "host3": 0}
    assert movers.migrations(server) == [("live-migration", "completed")]


def test_an_aborted_one_leaves_the_server_where_it_was(movers: Movers) -> None:
    server = movers.boot("slow", host="host1")
    movers.cloud.conf.set_override("live_migration_seconds", 30, group="fake")
    try:
        movers.act(server, "os-migrateLive", {**LIVE, "host": "host2"})
        found = movers.running(server)
        movers.client.call("DELETE", f"/servers/{server}/migrations/{found['id']}")
        assert movers.settled(server) == ("ACTIVE", "host1")
    finally:
        movers.cloud.conf.clear_override("live_migration_seconds", group="fake")
    movers.only_on(server, "host1")
    assert movers.used() == {"host1": 1, "host2": 0, "host3": 0}
    assert movers.migrations(server) == [("live-migration", "cancelled")]


def test_one_can_be_completed_by_force(movers: Movers) -> None:
    server = movers.boot("slow", host="host1")
    movers.cloud.conf.set_override("live_migration_seconds", 60, group="fake")
    try:
        movers.act(server, "os-migrateLive", {**LIVE, "host": "host2"})
        found = movers.running(server)
        movers.client.call("POST", f"/servers/{server}/migrations/{found['id']}/action", {"force_complete": None})
        assert movers.settled(server) == ("ACTIVE", "host2")
    finally:
        movers.cloud.conf.clear_override("live_migration_seconds", group="fake")
    movers.only_on(server, "host2")


def test_a_delete_ends_one_that_runs(movers: Movers) -> None:
    server = movers.boot("slow", host="host1")
    movers.cloud.conf.set_override("live_migration_seconds", 60, group="fake")
    try:
        movers.act(server, "os-migrateLive", {**LIVE, "host": "host2"})
        movers.running(server)
        movers.client.delete([server])
    finally:
        movers.cloud.conf.clear_override("live_migration_seconds", group="fake")


@pytest.mark.parametrize("step", ["prepare_destination", "live_migrate", "live_migrate_end"])
def test_one_that_fails_leaves_the_server_where_it_was(movers: Movers, step: str) -> None:
    server = movers.boot(host="host1")
    with movers.faults(server={step: {"fail": "the cable is broken"}}):
        movers.act(server, "os-migrateLive", {**LIVE, "host": "host2"})
        assert movers.settled(server) == ("ACTIVE", "host1")
    movers.only_on(server, "host1")
    assert movers.used() == {"host1": 1, "host2": 0, "host3": 0}


@pytest.mark.parametrize("step", ["land", "clean"])
def test_what_fails_after_the_switch_costs_the_server_nothing(movers: Movers, step: str) -> None:
    # Launchpad 1414065, 1662626: such servers were shown as off, or stayed "migrating".
    server = movers.boot(host="host1")
    with movers.faults(server={step: {"fail": "out of luck"}}):
        movers.act(server, "os-migrateLive", {**LIVE, "host": "host2"})
        assert movers.settled(server) == ("ACTIVE", "host2")
        assert movers.used() == {"host1": 0, "host2": 1, "host3": 0}
    movers.only_on(server, "host2")
    assert movers.migrations(server) == [("live-migration", "completed")]


def test_of_two_members_that_go_to_the_last_free_host_one_stays(movers: Movers) -> None:
    group = movers.client.group("anti-affinity")
    one = movers.boot("one", host="host1", group=group)
    two = movers.boot("two", host="host2", group=group)
    for server in (one, two):
        movers.act(server, "os-migrateLive", LIVE)
    places = sorted(movers.settled(server) for server in (one, two))
    assert [status for status, _host in places] == ["ACTIVE", "ACTIVE"]
    assert len({host for _status, host in places}) == 2
    statuses = sorted(movers.migrations(server)[0][1] for server in (one, two))
    assert statuses == ["completed", "error"]

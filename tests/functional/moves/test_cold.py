# SPDX-License-Identifier: Apache-2.0
"""Resizes and cold migrations: confirmed, reverted, failed at each step, on another host and on the same."""

from __future__ import annotations

import pytest

from tests.fixtures.client import ApiError
from tests.functional.moves.conftest import Movers


def test_a_migration_is_confirmed(movers: Movers) -> None:
    server = movers.boot(host="host1")
    movers.act(server, "migrate", {"host": "host2"})
    assert movers.settled(server) == ("VERIFY_RESIZE", "host2")
    # Both halves are held, and both hosts have the disks, until it is confirmed.
    assert movers.used() == {"host1": 1, "host2": 1, "host3": 0}
    assert movers.migrations(server) == [("migration", "finished")]
    movers.agree()
    movers.act(server, "confirmResize")
    assert movers.becomes(server, "ACTIVE") == "host2"
    movers.only_on(server, "host2")
    assert movers.used() == {"host1": 0, "host2": 1, "host3": 0}
    assert movers.migrations(server) == [("migration", "confirmed")]


def test_a_resize_is_reverted(movers: Movers) -> None:
    server = movers.boot(host="host1")
    movers.act(server, "resize", {"flavorRef": movers.large})
    status, host = movers.settled(server)
    assert status == "VERIFY_RESIZE" and host != "host1"
    assert movers.client.server(server)["flavor"]["vcpus"] == 2
    assert movers.used()[host] == 2
    movers.agree()
    movers.act(server, "revertResize")
    movers.only_on(server, "host1")
    assert movers.settled(server) == ("ACTIVE", "host1")
    assert movers.client.server(server)["flavor"]["vcpus"] == 1
    assert sum(movers.used().values()) == 1
    assert movers.migrations(server) == [("resize", "reverted")]


@pytest.mark.parametrize("end", ["confirmResize", "revertResize"])
def test_a_resize_on_the_same_host_never_holds_both_sizes(movers: Movers, end: str) -> None:
    movers.force_down("host2")
    movers.force_down("host3")
    try:
        server = movers.boot()
        filler = movers.client.boot("filler", movers.large)
        movers.client.settle([filler])
        # 4 VCPUs: 1 of the server, 2 of the filler; the larger size needs 1 more, and both sizes would need 2.
        movers.act(server, "resize", {"flavorRef": movers.large})
        assert movers.settled(server) == ("VERIFY_RESIZE", "host1")
        assert movers.used()["host1"] == 4
        movers.agree()
        movers.act(server, end)
        assert movers.becomes(server, "ACTIVE") == "host1"
        movers.only_on(server, "host1")
        assert movers.used()["host1"] == (4 if end == "confirmResize" else 3)
    finally:
        movers.force_down("host2", False)
        movers.force_down("host3", False)


@pytest.mark.parametrize("step", ["move_out", "finish_migration"])
def test_a_step_that_fails_brings_the_server_back(movers: Movers, step: str) -> None:
    server = movers.boot(host="host1")
    with movers.faults(server={step: {"fail": "the cable is broken"}}):
        movers.act(server, "resize", {"flavorRef": movers.large})
        assert movers.settled(server) == ("ACTIVE", "host1")
    assert movers.client.server(server)["OS-EXT-STS:power_state"] == 1
    movers.only_on(server, "host1")
    assert sum(movers.used().values()) == 1
    assert movers.migrations(server) == [("resize", "error")]
    actions = movers.client.get(f"/servers/{server}/os-instance-actions")["instanceActions"]
    action = movers.client.get(f"/servers/{server}/os-instance-actions/{actions[0]['request_id']}")["instanceAction"]
    assert any("the cable is broken" in (event.get("details") or "") for event in action["events"])


def test_a_destination_that_fails_is_tried_elsewhere(movers: Movers) -> None:
    server = movers.boot(host="host1")
    with movers.faults(host2={"prepare_destination": {"fail": "full of cobwebs"}}):
        movers.act(server, "migrate", None)
        assert movers.settled(server) == ("VERIFY_RESIZE", "host3")
    movers.act(server, "confirmResize")
    movers.only_on(server, "host3")


def test_a_server_that_no_host_can_take_stays_what_it_was(movers: Movers) -> None:
    huge = movers.client.flavor("huge", vcpus=5, ram=512)
    server = movers.boot(host="host1")
    movers.act(server, "resize", {"flavorRef": huge})
    assert movers.settled(server) == ("ACTIVE", "host1")
    assert movers.migrations(server) == [("resize", "error")]


def test_a_stopped_server_stays_stopped(movers: Movers) -> None:
    server = movers.boot(host="host1")
    movers.act(server, "os-stop")
    assert movers.settled(server) == ("SHUTOFF", "host1")
    movers.act(server, "migrate", {"host": "host2"})
    assert movers.settled(server) == ("VERIFY_RESIZE", "host2")
    movers.act(server, "confirmResize")
    assert movers.becomes(server, "SHUTOFF") == "host2"
    movers.only_on(server, "host2")


@pytest.mark.parametrize("step", ["prepare_destination", "move_out", "finish_migration"])
def test_a_delete_at_any_step_leaves_nothing(movers: Movers, step: str) -> None:
    server = movers.boot(host="host1")
    with movers.faults(server={step: {"delay": 0.7}}):
        movers.act(server, "migrate", {"host": "host2"})
        movers.client.delete([server])
    # The fixture looks whether anything is left.


def test_a_delete_before_the_confirmation_leaves_nothing(movers: Movers) -> None:
    server = movers.boot(host="host1")
    movers.act(server, "migrate", {"host": "host2"})
    assert movers.settled(server)[0] == "VERIFY_RESIZE"
    movers.client.delete([server])


def test_a_source_that_cannot_clean_up_costs_the_server_nothing(movers: Movers) -> None:
    # Launchpad 1821594: the source stayed charged, since confirming failed.
    server = movers.boot(host="host1")
    movers.act(server, "migrate", {"host": "host2"})
    movers.settled(server)
    with movers.faults(host1={"clean": {"fail": "disk is stuck"}}):
        movers.act(server, "confirmResize")
        assert movers.becomes(server, "ACTIVE") == "host2"
        assert movers.used() == {"host1": 0, "host2": 1, "host3": 0}
    movers.only_on(server, "host2")


def test_a_second_move_is_refused_while_the_first_waits(movers: Movers) -> None:
    server = movers.boot(host="host1")
    movers.act(server, "migrate", {"host": "host2"})
    movers.settled(server)
    with pytest.raises(ApiError, match="409"):
        movers.act(server, "migrate", {"host": "host3"})
    assert movers.migrations(server) == [("migration", "finished")]

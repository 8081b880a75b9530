# SPDX-License-Identifier: Apache-2.0
"""Rescues in the whole cloud: a rescued server stays that until it is unrescued, whatever is seen of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures import faults
from tests.fixtures.client import Client
from tests.fixtures.inside import InsideCloud
from tests.functional.life.test_pause_and_suspend import last_action, settled


def test_there_and_back(client: Client, server: str) -> None:
    assert client.act(server, rescue=None)["adminPass"]
    assert settled(client, server)["status"] == "RESCUE"
    action = last_action(client, server)
    assert (action["action"], action["events"][0]["event"]) == ("rescue", "compute_rescue_instance")
    client.act(server, unrescue=None)
    assert settled(client, server)["status"] == "ACTIVE"
    assert last_action(client, server)["events"][0]["event"] == "compute_unrescue_instance"


def test_reports_of_what_the_hypervisor_shows_undo_nothing(inside: InsideCloud, client: Client, server: str) -> None:
    client.act(server, rescue=None)
    settled(client, server)
    inside.driver.guest_powers_off(server)
    inside.compute._events.submit([server])[0].result(10)
    found = client.server(server)
    assert (found["status"], found["OS-EXT-STS:power_state"]) == ("RESCUE", 4)


@pytest.mark.parametrize("fault", [{"fail": "no such disk"}, {"hang": True}])
@pytest.mark.parametrize(("step", "status"), [("rescue", "ACTIVE"), ("unrescue", "RESCUE")])
def test_a_failure_leaves_the_server_as_it_is_and_says_why(
    inside: InsideCloud, client: Client, server: str, step: str, status: str, fault: dict[str, Any]
) -> None:
    if step == "unrescue":
        client.act(server, rescue=None)
        settled(client, server)
    with faults.injected(inside.directory, {"*": {step: fault}}):
        client.act(server, **{step: None})
        assert settled(client, server)["status"] == status
    assert ("no such disk" if "fail" in fault else "hangs") in last_action(client, server)["message"]


@pytest.mark.parametrize("step", ["rescue", "unrescue"])
def test_a_delete_in_the_middle_wins(inside: InsideCloud, client: Client, server: str, step: str) -> None:
    if step == "unrescue":
        client.act(server, rescue=None)
        settled(client, server)
    with faults.injected(inside.directory, {"*": {step: {"delay": 0.7}}}):
        client.act(server, **{step: None})
        client.delete([server])
    assert inside.driver.domain(server) is None

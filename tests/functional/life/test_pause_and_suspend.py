# SPDX-License-Identifier: Apache-2.0
"""Pausing and suspending in the whole cloud: it works, it fails with its reason, and nobody undoes it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from nova_lite.objects import instance as states
from nova_lite.objects.instance import DomainInfo
from tests.fixtures import faults
from tests.fixtures.client import Client
from tests.fixtures.inside import InsideCloud

# there, the status there, and back
PAIRS = [("pause", "PAUSED", "unpause"), ("suspend", "SUSPENDED", "resume")]


def settled(client: Client, server: str) -> dict[str, Any]:
    return client.settle([server])[0]


def last_action(client: Client, server: str) -> dict[str, Any]:
    """Return the newest action with its events."""
    path = f"/servers/{server}/os-instance-actions"
    newest = client.get(path)["instanceActions"][0]
    found: dict[str, Any] = client.get(f"{path}/{newest['request_id']}")["instanceAction"]
    return found


@pytest.mark.parametrize(("there", "status", "back"), PAIRS)
def test_there_and_back(client: Client, server: str, there: str, status: str, back: str) -> None:
    client.act(server, **{there: None})
    assert settled(client, server)["status"] == status
    action = last_action(client, server)
    assert (action["action"], action["message"]) == (there, None)
    assert [(e["event"], e["result"]) for e in action["events"]] == [(f"compute_{there}_instance", "Success")]

    client.act(server, **{back: None})
    assert settled(client, server)["status"] == "ACTIVE"
    assert last_action(client, server)["events"][0]["event"] == f"compute_{back}_instance"


@pytest.mark.parametrize("fault", [{"fail": "the memory is gone"}, {"hang": True}])
@pytest.mark.parametrize(("there", "status", "back"), PAIRS)
def test_a_failure_leaves_the_server_as_it_is_and_says_why(
    inside: InsideCloud, client: Client, server: str, there: str, status: str, back: str, fault: dict[str, Any]
) -> None:
    with faults.injected(inside.directory, {"*": {there: fault}}):
        client.act(server, **{there: None})
        assert settled(client, server)["status"] == "ACTIVE"
    reason = "the memory is gone" if "fail" in fault else "hangs"
    assert reason in last_action(client, server)["message"]
    client.act(server, **{there: None})
    assert settled(client, server)["status"] == status
    with faults.injected(inside.directory, {"*": {back: fault}}):
        client.act(server, **{back: None})
        assert settled(client, server)["status"] == status
    assert reason in last_action(client, server)["message"]


@pytest.mark.parametrize(("there", "status", "back"), PAIRS)
def test_reports_of_what_the_hypervisor_shows_undo_nothing(
    inside: InsideCloud, client: Client, server: str, there: str, status: str, back: str
) -> None:
    client.act(server, **{there: None})
    settled(client, server)
    looked = threading.Event()
    inside.compute._events.submit([server])[0].add_done_callback(lambda _future: looked.set())
    assert looked.wait(10)
    inside.compute._report_domains()
    assert client.server(server)["status"] == status


def test_what_somebody_resumed_at_the_hypervisor_is_active(inside: InsideCloud, client: Client, server: str) -> None:
    client.act(server, suspend=None)
    settled(client, server)
    domain = inside.driver.domain(server)
    assert domain is not None
    inside.driver._put(DomainInfo(domain.uuid, domain.node, states.RUNNING))
    inside.compute._events.submit([server])[0].result(10)
    assert client.server(server)["status"] == "ACTIVE"


@pytest.mark.parametrize(("there", "status", "back"), PAIRS)
def test_a_delete_in_the_middle_wins(
    inside: InsideCloud, client: Client, server: str, there: str, status: str, back: str
) -> None:
    with faults.injected(inside.directory, {"*": {there: {"delay": 1.0}}}):
        client.act(server, **{there: None})
        client.delete([server])
    assert inside.driver.domain(server) is None


@pytest.mark.parametrize(("there", "status", "back"), PAIRS)
def test_a_hard_reboot_wakes_a_server(client: Client, server: str, there: str, status: str, back: str) -> None:
    client.act(server, **{there: None})
    settled(client, server)
    client.act(server, reboot={"type": "HARD"})
    assert settled(client, server)["status"] == "ACTIVE"

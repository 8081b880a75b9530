# SPDX-License-Identifier: Apache-2.0
"""Stacks of other kinds: disks that are not shared, and hosts without guests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fixtures.client import wait_until_empty
from tests.fixtures.stack import Stack

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_guests_move_with_their_disks(make_stack: Callable[..., Stack]) -> None:
    stack = make_stack(LIVE_MIGRATION="block", HOSTS="2")
    stack.must("stack.sh")
    server = stack.boot("mover", "n1")
    stack.live_migrate(server, "n2")
    assert stack.settled(server) == ("ACTIVE", "n2")
    stack.goes_on(server, "n2")
    wait_until_empty(lambda: list((stack.dest / "data/hosts/n1/instances").glob(f"{server}/disk")), 30)
    stack.client.delete([server])
    stack.is_consistent()
    stack.must("unstack.sh")


def test_fake_hosts_have_power_and_cables_too(make_stack: Callable[..., Stack]) -> None:
    stack = make_stack(VIRT_DRIVER="fake", HOSTS="2", FAKE_NODES="50", SCHEDULERS="3")
    assert "2 fake hosts" in stack.must("stack.sh")
    assert "hosts: 100 of 100" in stack.must("status")
    servers = stack.client.boot_at_once(10, stack.client.flavor("small"))
    assert {server["status"] for server in stack.client.settle(servers, 120)} == {"ACTIVE"}
    stack.host("n1", "power-off")
    wait_until_empty(lambda: [] if stack.service("n1-1")["state"] == "down" else ["up"], 60)
    stack.host("n1", "power-on")
    stack.wait_until_up("n1-1")
    stack.client.delete(servers)
    stack.is_consistent()


def test_two_stacks_live_beside_each_other(make_stack: Callable[..., Stack]) -> None:
    stacks = [make_stack(VIRT_DRIVER="fake", HOSTS="1", CONDUCTORS="1", SCHEDULERS="1") for _ in range(2)]
    for stack in stacks:
        stack.must("stack.sh")
    first, second = stacks
    server = first.client.boot("mine", first.client.flavor("small"))
    assert first.settled(server)[0] == "ACTIVE"
    assert not second.client.servers()
    first.must("unstack.sh")
    assert "The cloud is healthy." in second.must("status")

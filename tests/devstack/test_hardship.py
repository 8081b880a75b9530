# SPDX-License-Identifier: Apache-2.0
"""What hosts and services go through in a stack with Keystone and Glance; after each, all books agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fixtures.client import wait_until_empty
from tests.fixtures.stack import Stack

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

# A guest changes its memory faster than this: its migration goes on until something happens.
_SLOW_MIGRATION = """
[[post-config|$NOVA_LITE_CPU_CONF]]
[libvirt]
live_migration_bandwidth = 1
"""


@pytest.fixture(scope="module")
def stack(make_stack: Callable[..., Stack], openstack_home: Path) -> Iterator[Stack]:
    made = make_stack(ENABLE_KEYSTONE="True", OPENSTACK_VENV=str(openstack_home))
    made.must("stack.sh")
    yield made


@pytest.fixture(autouse=True)
def consistency(stack: Stack) -> Iterator[None]:
    yield
    stack.client.delete([server["id"] for server in stack.client.servers()])
    stack.is_consistent()


def begin_migration(stack: Stack, server: str, target: str) -> None:
    """Begin a live migration, and return when memory is being copied."""
    stack.live_migrate(server, target)
    path = f"/servers/{server}/migrations"

    def idle() -> list[str]:
        found = stack.client.get(path)["migrations"]
        return [] if any(each["status"] == "running" for each in found) else ["not running"]

    wait_until_empty(idle, 60)


def test_an_ordinary_user_boots_with_the_stock_client(stack: Stack) -> None:
    command = "openstack server create --flavor m1.nano --image nano --wait mine -f value -c status -c addresses"
    shown = stack.as_user(command, "demo")
    assert "ACTIVE" in shown and stack.settings["GUEST_RANGE"].rsplit(".", 1)[0] in shown
    assert "The cloud is healthy." in stack.must("status")


def test_a_guest_moves_over_a_slow_cable(stack: Stack) -> None:
    server = stack.boot("traveller", "n1")
    stack.host("n2", "slow", "50")
    try:
        assert "management slow" in stack.host("list")
        stack.live_migrate(server, "n2")
        assert stack.settled(server) == ("ACTIVE", "n2")
    finally:
        stack.host("n2", "heal")
    assert "slow" not in stack.host("list")
    stack.goes_on(server, "n2")


def test_libvirt_restarts_and_guests_go_on(stack: Stack) -> None:
    server = stack.boot("untouched", "n3")
    stack.host("n3", "restart-libvirtd")
    stack.goes_on(server, "n3")
    stack.live_migrate(server, "n1")
    assert stack.settled(server) == ("ACTIVE", "n1")


def test_a_compute_is_killed_and_guests_go_on(stack: Stack) -> None:
    server = stack.boot("orphan", "n2")
    stack.host("n2", "restart-compute")
    stack.wait_until_up("n2")
    stack.goes_on(server, "n2")


@pytest.mark.parametrize("victim", ["rabbitmq", "mariadb"])
def test_a_service_dies_under_load(stack: Stack, victim: str) -> None:
    servers = [stack.ask_for(f"burst-{number}") for number in range(6)]
    stack.kill(victim)
    stack.must("stack.sh")
    found = stack.client.settle(servers, 240)
    assert [server["status"] for server in found] == ["ACTIVE"] * 6, [server.get("fault") for server in found]


@pytest.fixture
def slow_migrations(stack: Stack) -> Iterator[None]:
    """Let migrations from n1 take for ever."""
    usual = stack.local_conf.read_text()
    stack.local_conf.write_text(usual + _SLOW_MIGRATION)
    stack.host("n1", "restart-compute")
    yield
    stack.local_conf.write_text(usual)
    stack.host("n1", "restart-compute")


def test_a_cable_is_cut_in_a_migration(stack: Stack, slow_migrations: None) -> None:
    server = stack.boot("cut-off", "n1")
    begin_migration(stack, server, "n2")
    stack.host("n2", "cut")
    # The guest goes on where it is; that it is not also where it was going to can be told only when n2 answers again.
    wait_until_empty(lambda: [] if stack.service("n2")["state"] == "down" else ["up"], 60)
    stack.goes_on(server, "n1")
    stack.host("n2", "heal")
    assert stack.settled(server) == ("ACTIVE", "n1")
    assert stack.migrations(server) == ["error"]
    stack.goes_on(server, "n1")
    stack.wait_until_up("n2")
    wait_until_empty(lambda: stack.guests()["n2"], 60)


def test_a_host_dies_while_a_guest_comes_to_it(stack: Stack, slow_migrations: None) -> None:
    server = stack.boot("bereft", "n1")
    begin_migration(stack, server, "n3")
    stack.host("n3", "power-off")
    stack.goes_on(server, "n1")
    stack.host("n3", "power-on")
    assert stack.settled(server) == ("ACTIVE", "n1")
    assert stack.migrations(server) == ["error"]
    stack.goes_on(server, "n1")
    stack.wait_until_up("n3")

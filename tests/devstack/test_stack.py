# SPDX-License-Identifier: Apache-2.0
"""One stack of three libvirt hosts, from nothing to nothing. The tests go on from each other, in this order."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fixtures import guest
from tests.fixtures.client import wait_until_empty
from tests.fixtures.stack import Stack

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stack(make_stack: Callable[..., Stack]) -> Iterator[Stack]:
    """The stack, with what stack.sh has said in .said."""
    made = make_stack()
    made.said = made.must("stack.sh")
    yield made


def test_every_step_is_told_with_its_time(stack: Stack) -> None:
    steps = re.findall(r"^\[ ?(\d+)/(\d+)\] \S.* +\d+\.\d s", stack.said, re.MULTILINE)
    assert [int(number) for number, _of in steps] == list(range(1, int(steps[0][1]) + 1))
    assert f"http://{stack.service_host}:{stack.chosen('NOVA_LITE_PORT')}" in stack.said


def test_a_second_run_changes_nothing_that_runs(stack: Stack) -> None:
    before = stack.pids()
    assert {"mariadb", "rabbitmq", "nova-lite-api", "libvirtd-n3", "nova-lite-compute-n3"} <= set(before)
    stack.must("stack.sh")
    assert stack.pids() == before


def test_nobody_but_root_can_read_a_password(stack: Stack) -> None:
    secrets = [stack.chosen(name).encode() for name in ("ADMIN_PASSWORD", "DATABASE_PASSWORD", "RABBIT_PASSWORD")]
    files = [path for name in ("etc", "data/hosts", "bin", "logs") for path in (stack.dest / name).rglob("*")]
    holding = [path for path in files if path.is_file() and any(each in path.read_bytes() for each in secrets)]
    assert stack.dest / "etc/passwords" in holding
    assert not [path for path in holding if path.stat().st_mode & 0o077]


def test_hosts_are_hosts_of_their_own(stack: Stack) -> None:
    def say(name: str, command: str) -> str:
        return stack.host(name, "shell", "sh", "-c", command).strip()

    assert say("n2", "hostname") == "n2"
    assert say("n1", "cat /etc/machine-id") != say("n2", "cat /etc/machine-id")
    assert say("n1", "virsh capabilities | grep -m 1 uuid") != say("n2", "virsh capabilities | grep -m 1 uuid")
    processes = say("n3", "ps -e -o comm=") if Path("/bin/ps").exists() else say("n3", "cat /proc/[0-9]*/comm")
    assert "libvirtd" in processes and "mariadbd" not in processes
    # Computes have no way to the database: neither a login nor, on their disk, its password.
    assert "[database]" not in (stack.dest / "data/hosts/n1/etc/nova-lite.conf").read_text()


def test_a_guest_boots_and_is_live_migrated(stack: Stack) -> None:
    server = stack.boot("traveller", "n1")
    wait_until_empty(lambda: [] if guest.READY in stack.console(server, "n1") else ["not ready"], 60)
    stack.live_migrate(server, "n2")
    assert stack.settled(server) == ("ACTIVE", "n2")
    assert stack.migrations(server) == ["completed"]
    # It was not booted anew: READY was said once, and it goes on.
    stack.goes_on(server, "n2")
    assert stack.console(server, "n2").count(guest.READY) == 1
    running = stack.guests()
    assert [len(running[host]) for host in ("n1", "n2", "n3")] == [0, 1, 0]
    assert "The cloud is healthy." in stack.must("status")
    stack.is_consistent()
    stack.client.delete([server])


def test_a_host_loses_its_power_and_comes_back(stack: Stack) -> None:
    server = stack.boot("survivor", "n1")
    stack.host("n1", "power-off")
    status = stack.run("status")
    assert status.returncode == 1 and re.search(r"^host-n1 .*gone", status.stdout, re.MULTILINE)
    stack.force_down("n1")
    stack.client.call("POST", f"/servers/{server}/action", {"evacuate": {"host": "n3"}})
    wait_until_empty(lambda: [] if stack.place(server)[1] == "n3" else [stack.place(server)], 60)
    stack.client.settle([server], 60)
    stack.host("n1", "power-on")
    stack.force_down("n1", False)
    stack.wait_until_up("n1")
    assert not stack.guests()["n1"]
    stack.is_consistent()
    stack.client.delete([server])


def test_a_person_uses_the_stock_client(stack: Stack) -> None:
    shown = stack.as_user("openstack flavor list -f value -c Name", "demo")
    assert {"m1.nano", "m1.tiny"} <= set(shown.split())


def test_unstack_leaves_nothing_but_what_took_long_to_make(stack: Stack) -> None:
    stack.boot("forgotten", "n2")
    stack.host("n3", "slow", "20")
    inits = [int(pid) for name, pid in stack.pids().items() if name.startswith("host-")]
    assert len(stack.marked()) > 10
    stack.must("unstack.sh")
    assert not stack.marked()
    assert not [pid for pid in inits if Path(f"/proc/{pid}").exists()]
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert f"{stack.prefix}-" not in links
    assert str(stack.dest) not in Path("/proc/mounts").read_text()
    routes = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
    assert stack.service_host.rsplit(".", 1)[0] not in routes
    assert {path.name for path in stack.dest.iterdir()} <= {"cache", "venvs", ".nova-lite-devstack"}
    stack.must("clean.sh")
    assert not stack.dest.exists()

# SPDX-License-Identifier: Apache-2.0
"""Moves on real parts: three hosts with a libvirtd and a compute service each, driven by the stock client.

RabbitMQ, MariaDB, two schedulers, two conductors; QEMU guests that beat on their consoles, so that one that was started
anew is told from one that went on.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from nova_lite import audit
from nova_lite.db.session import Database
from tests.fixtures import guest
from tests.fixtures.client import Client, at_once
from tests.fixtures.cloud import PASSWORD, Cloud, Process, wait_for
from tests.fixtures.hosts import Host, Hosts
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.rabbitmq import RabbitMQ
from tests.fixtures.stock_client import StockClient
from tools.benchmarks.placement import options_of

NAMES = ("n1", "n2", "n3")


class Ring:
    """Three hosts, each with its compute process, and the two clients of their cloud."""

    def __init__(self, hosts: Hosts, cloud: Cloud, shared: bool, image: Path) -> None:
        self.hosts = {host.hostname: host for host in hosts.all}
        self.cloud = cloud
        self.shared = shared
        self.computes: dict[str, Process] = {}
        for program in ("api", "conductor", "conductor", "scheduler", "scheduler"):
            cloud.start(program)
        for name in self.hosts:
            self.start(name)
        cloud.wait_until_up()
        wait_for(lambda: len(cloud.client().get("/os-services?binary=nova-compute")["services"]) == 3, 60, cloud.logs)
        cloud.wait_for_hosts("up")
        self.client: Client = cloud.client()
        self.client.image("nano", image.read_bytes(), disk_format="qcow2")
        self.client.flavor("x.nano", vcpus=1, ram=32, disk=1)
        self.openstack = StockClient(f"{cloud.url}/v3", "admin", PASSWORD, "admin", cloud.logs)

    def state(self, name: str) -> Path:
        return self.cloud.directory / name

    def instances(self, name: str) -> Path:
        return self.cloud.directory / "shared" if self.shared else self.state(name) / "instances"

    def start(self, name: str, more: Mapping[str, str] | None = None) -> None:
        """Start the compute service of a host.

        :param more: options of [libvirt].
        """
        host = self.hosts[name]
        settings = {
            "DEFAULT": {"host": name, "state_path": str(self.state(name))},
            "compute": {"instances_path": str(self.instances(name))},
            "image": {"path": str(self.state("state") / "images")},
            "libvirt": {
                "connection_uri": host.uri,
                "live_migration_uri": "qemu+tcp://%s/system",
                "live_migration_inbound_addr": name,
                "disk_transfer_uri": host.uri,
                "live_migration_unsafe": str(self.shared),
                **(more or {}),
            },
        }
        self.computes[name] = self.cloud.start("compute", self.cloud.configure(name, settings))

    def boot(self, name: str, host: str | None = None, group: str | None = None) -> str:
        more: dict[str, Any] = {"availability_zone": f"nova:{host}"} if host else {}
        flavor, image = self.client.flavor("x.nano"), self.client.image("nano")
        server = self.client.boot(name, flavor, group, imageRef=image, **more)
        (found,) = self.client.settle([server])
        assert found["status"] == "ACTIVE", found.get("fault")
        wait_for(lambda: guest.READY in self.console(server), 60, self.cloud.logs)
        return server

    def console(self, server: str) -> str:
        return str(self.client.act(server, os_getConsoleOutput={})["output"])

    def beats(self, server: str) -> list[int]:
        return guest.beats(self.console(server))

    def place(self, server: str) -> tuple[str, str]:
        (found,) = self.client.settle([server], 90)
        return found["status"], found["OS-EXT-SRV-ATTR:host"]

    def domains(self, server: str) -> list[str]:
        """Return the hosts that have a domain of the server."""
        found = []
        for name, host in self.hosts.items():
            if server in host.run(["virsh", "list", "--all", "--uuid"]):
                found.append(name)
        return found

    def directories(self, server: str) -> list[str]:
        if self.shared:
            return []
        return [name for name in NAMES for path in self.instances(name).glob(f"{server}*") if path.is_dir()]

    def agrees(self, server: str, host: str) -> None:
        """Wait until domains and disks are on the host alone, and make sure that the books say the same."""
        there = [] if self.shared else [host]
        wait_for(lambda: (self.domains(server), self.directories(server)) == ([host], there), 60, self.cloud.logs)
        database = Database(options_of(self.cloud.config))
        try:
            assert audit.find(audit.look(database, patience=0)) == []
        finally:
            database.close()


@pytest.fixture(scope="module")
def make_ring(
    mariadb: MariaDB, rabbitmq: RabbitMQ, hosts: Hosts, image: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[bool], Ring]:
    def make(shared: bool) -> Ring:
        settings = {
            "DEFAULT": {"service_down_time": "15"},
            "compute": {
                "driver": "libvirt",
                "cpu_allocation_ratio": "8",
                "shutdown_timeout": "5",
                "inventory_interval": "1",
            },
            "libvirt": {"virt_type": "qemu"},
            "conductor": {"lease": "10", "sweep_interval": "1"},
        }
        database = mariadb.url(mariadb.create_database())
        cloud = Cloud(tmp_path_factory.mktemp("ring"), database, rabbitmq.vhost_url(), settings)
        return Ring(hosts, cloud, shared, image)

    return make


@pytest.fixture(scope="module")
def ring(make_ring: Callable[[bool], Ring]) -> Iterator[Ring]:
    """Hosts with disks of their own."""
    made = make_ring(False)
    yield made
    made.cloud.stop()


def go_round(ring: Ring) -> None:
    server = ring.boot("traveller", "n1")
    for target in ("n2", "n3", "n1"):
        before = ring.beats(server)[-1]
        ring.openstack(f"server migrate --live-migration --host {target} --wait traveller", form=False)
        assert ring.place(server) == ("ACTIVE", target)
        ring.agrees(server, target)
        # It goes on: the beat is later than before, and READY was not said again.
        wait_for(lambda: ring.beats(server)[-1] > before, 30, ring.cloud.logs)  # noqa: B023 - waited for in the loop
        assert guest.READY not in ring.console(server).split(str(before))[-1]
    moves = ring.openstack("server migration list --server traveller")
    assert [row["Status"] for row in moves] == ["completed"] * 3
    ring.client.delete([server])


@pytest.mark.long
def test_a_running_guest_goes_round_the_ring_with_its_disks(ring: Ring) -> None:
    go_round(ring)


@pytest.mark.long
def test_a_guest_is_migrated_and_resized_and_keeps_its_disk(ring: Ring) -> None:
    ring.client.flavor("x.large", vcpus=1, ram=64, disk=2)
    server = ring.boot("grower", "n1")
    ring.openstack("server resize --flavor x.large --wait grower", form=False)
    status, host = ring.place(server)
    assert status == "VERIFY_RESIZE" and host != "n1"
    assert sorted(ring.domains(server)) == sorted(["n1", host])
    ring.openstack("server resize confirm grower", form=False)
    wait_for(lambda: ring.client.server(server)["status"] == "ACTIVE", 60, ring.cloud.logs)
    ring.agrees(server, host)
    shown = subprocess.run(
        ["qemu-img", "info", "--output=json", "-U", ring.instances(host) / server / "disk"],
        capture_output=True,
        check=True,
    )
    assert json.loads(shown.stdout)["virtual-size"] == 2 << 30
    ring.openstack("server migrate --host n1 --wait grower", form=False)
    ring.openstack("server migration revert grower", form=False)
    wait_for(lambda: ring.client.server(server)["status"] == "ACTIVE", 60, ring.cloud.logs)
    ring.agrees(server, host)
    ring.client.delete([server])


def fill_disk(disk: Path, mebibytes: int) -> None:
    command = ["qemu-io", "-f", "qcow2", "-c", f"write -P 7 1M {mebibytes}M", str(disk)]
    subprocess.run(command, capture_output=True, check=True)


@pytest.mark.long
def test_a_live_migration_is_aborted(ring: Ring) -> None:
    server = ring.boot("undecided", "n1")
    ring.client.act(server, os_stop=None)
    assert ring.place(server) == ("SHUTOFF", "n1")
    # At 1 MiB a second this takes longer than the client needs to ask for an end.
    fill_disk(ring.instances("n1") / server / "disk", 200)
    ring.client.act(server, os_start=None)
    assert ring.place(server) == ("ACTIVE", "n1")
    ring.computes["n1"].stop()
    ring.start("n1", {"live_migration_bandwidth": "1"})
    ring.computes["n1"].wait_until_started()
    ring.cloud.wait_for_hosts("up")
    ring.openstack("server migrate --live-migration --host n2 undecided", form=False)
    path = f"/servers/{server}/migrations"
    wait_for(lambda: any(m["status"] == "running" for m in ring.client.get(path)["migrations"]), 60, ring.cloud.logs)
    (found,) = ring.client.get(path)["migrations"]
    ring.openstack(f"server migration abort undecided {found['id']}", form=False)
    assert ring.place(server) == ("ACTIVE", "n1")
    ring.agrees(server, "n1")
    (row,) = ring.openstack("server migration list --server undecided")
    assert row["Status"] == "cancelled"
    ring.client.delete([server])
    ring.computes["n1"].stop()
    ring.start("n1")
    ring.computes["n1"].wait_until_started()
    ring.cloud.wait_for_hosts("up")


@pytest.mark.long
def test_of_two_members_that_go_to_the_last_free_host_one_stays(ring: Ring) -> None:
    group = ring.client.group("anti-affinity")
    one, two = ring.boot("one", "n1", group), ring.boot("two", "n2", group)
    asked = ("one", "two")
    at_once(2, lambda n: ring.openstack(f"server migrate --live-migration --host n3 {asked[n]}", form=False))
    places = {server: ring.place(server) for server in (one, two)}
    assert {status for status, _host in places.values()} == {"ACTIVE"}
    hosts = {host for _status, host in places.values()}
    assert len(hosts) == 2 and "n3" in hosts
    rows = ring.openstack("server migration list")
    statuses = sorted(row["Status"] for row in rows if row["Server UUID"] in (one, two))
    assert statuses == ["completed", "error"]
    for server, (_status, host) in places.items():
        ring.agrees(server, host)
    ring.client.delete([one, two])


@pytest.mark.long
def test_a_dead_host_is_evacuated_and_returns(ring: Ring) -> None:
    server = ring.boot("survivor", "n3")
    host: Host = ring.hosts["n3"]
    ring.computes["n3"].kill()
    host.lose_power()
    wait_for(lambda: _state(ring, "n3") == "down", 60, ring.cloud.logs)
    # A silent host may still run its guests: somebody has to say that it does not.
    assert "force" in ring.openstack.refusal("server evacuate survivor")
    ring.openstack("compute service set --down n3 nova-compute", form=False)
    # The client speaks the newest microversion, so the server ends stopped: --wait would wait for ACTIVE.
    ring.openstack("server evacuate survivor", form=False)
    status, new = ring.place(server)
    assert status == "SHUTOFF" and new != "n3"
    ring.openstack("server start survivor", form=False)
    assert ring.place(server) == ("ACTIVE", new)
    # The host returns with the guest's domain and disks, and removes what it is proven to have lost.
    host.plug_in_again()
    host.start_daemon()
    ring.start("n3")
    wait_for(lambda: ring.domains(server) == [new] and ring.directories(server) == [new], 60, ring.cloud.logs)
    wait_for(lambda: not _held(ring), 30, ring.cloud.logs)
    ring.openstack("compute service set --up n3 nova-compute", form=False)
    ring.cloud.wait_for_hosts("up")
    ring.agrees(server, new)
    ring.client.delete([server])


def _state(ring: Ring, host: str) -> str:
    (found,) = ring.client.get(f"/os-services?binary=nova-compute&host={host}")["services"]
    return str(found["state"])


def _held(ring: Ring) -> list[str]:
    found = ring.client.get("/os-migrations?migration_type=evacuation")["migrations"]
    return [each["uuid"] for each in found if each["status"] == "done"]


@pytest.mark.long
def test_a_running_guest_goes_round_the_ring_on_shared_disks(ring: Ring, make_ring: Callable[[bool], Ring]) -> None:
    ring.cloud.stop()
    shared = make_ring(True)
    try:
        go_round(shared)
    finally:
        shared.cloud.stop()

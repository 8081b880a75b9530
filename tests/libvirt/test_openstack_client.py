# SPDX-License-Identifier: Apache-2.0
"""The main job on real parts: the stock ``openstack`` client boots QEMU guests through RabbitMQ, MariaDB and libvirt.

Three schedulers, two conductors, one compute. Each command of the client takes seconds of its own, so the walk through
them is one test, and what it is not about goes through plain HTTP.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures import guest
from tests.fixtures.books import disagreements
from tests.fixtures.client import ApiError, Client
from tests.fixtures.cloud import PASSWORD, Cloud, wait_for
from tests.fixtures.libvirtd import Libvirtd
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.ports import free_port
from tests.fixtures.rabbitmq import RabbitMQ
from tests.fixtures.stock_client import StockClient
from tests.fixtures.web_socket import Refused, Screen, shake_hands, socket_url


@pytest.fixture(scope="module")
def cloud(
    mariadb: MariaDB, rabbitmq: RabbitMQ, libvirtd: Libvirtd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    port = free_port()
    settings = {
        "DEFAULT": {"host": "kvmhost", "service_down_time": "15"},
        "compute": {"driver": "libvirt", "cpu_allocation_ratio": "8", "shutdown_timeout": "5"},
        "libvirt": {"virt_type": "qemu", "connection_uri": libvirtd.uri},
        "novnc": {"enabled": "true", "port": str(port), "base_url": f"http://127.0.0.1:{port}/vnc_lite.html"},
    }
    database = mariadb.url(mariadb.create_database())
    cloud = Cloud(tmp_path_factory.mktemp("cloud"), database, rabbitmq.vhost_url(), settings)
    try:
        cloud.start_all(schedulers=3, conductors=2)
        yield cloud
    finally:
        cloud.stop()


@pytest.fixture(scope="module")
def openstack(cloud: Cloud) -> StockClient:
    return StockClient(f"{cloud.url}/v3", "admin", PASSWORD, "admin", cloud.logs)


@pytest.fixture(scope="module")
def client(cloud: Cloud, image: Path) -> Client:
    client = cloud.client()
    client.image("nano", image.read_bytes(), disk_format="qcow2")
    client.flavor("x.nano", vcpus=1, ram=32, disk=1)
    return client


def boot(client: Client, name: str, **more: Any) -> str:
    return client.boot(name, client.flavor("x.nano"), imageRef=client.image("nano"), **more)


def console(client: Client, server: str) -> str:
    return str(client.act(server, os_getConsoleOutput={})["output"])


def test_a_guest_lives_as_the_client_says(cloud: Cloud, client: Client, openstack: StockClient) -> None:
    openstack("server group create --policy anti-affinity lone")
    made = openstack(
        "server create --image nano --flavor x.nano --nic none --config-drive True --property a=b --wait first"
    )
    assert made["status"] == "ACTIVE"
    assert made["OS-EXT-SRV-ATTR:host"] == "kvmhost"
    server = made["id"]
    wait_for(lambda: guest.READY in openstack("console log show first", form=False), 60, cloud.logs)

    assert [row["Name"] for row in openstack("server list")] == ["first"]
    shown = openstack("server show first")
    assert shown["image"].startswith("nano (") and shown["properties"] == {"a": "b"}
    up = {row["Binary"]: row["State"] for row in openstack("compute service list")}
    assert up == {"nova-conductor": "up", "nova-scheduler": "up", "nova-compute": "up"}
    assert [row["Hypervisor Type"] for row in openstack("hypervisor list")] == ["QEMU"]
    assert [row["Action"] for row in openstack("server event list first")] == ["create"]

    openstack("server stop first", form=False)
    assert client.settle([server])[0]["status"] == "SHUTOFF"
    openstack("server start first", form=False)
    assert client.settle([server])[0]["status"] == "ACTIVE"
    wait_for(lambda: console(client, server).count(guest.READY) == 2, 60)
    assert not disagreements(cloud.database)

    openstack("server delete --wait first", form=False)
    assert openstack("server list") == []
    assert not disagreements(cloud.database)
    assert not list((cloud.directory / "state" / "instances").glob(f"{server}*"))


def test_the_screen_of_a_guest_is_shown_through_the_proxy(cloud: Cloud, client: Client) -> None:
    """Each guest's own, for its own token; and what QEMU counts of it."""
    proxy = cloud.start("novncproxy")
    servers = [boot(client, name) for name in ("seen", "unseen")]
    client.settle(servers)
    wanted = {"remote_console": {"protocol": "vnc", "type": "novnc"}}

    def url_of(server: str) -> str:
        return socket_url(client.call("POST", f"/servers/{server}/remote-consoles", wanted)["remote_console"]["url"])

    proxy.wait_until_started()
    for server in servers:
        screen = Screen(url_of(server))
        width, height, name = shake_hands(screen)
        screen.close()
        assert width and height and name == f"QEMU (instance-{server})"

    measured = client.get(f"/servers/{servers[0]}/diagnostics")
    assert (measured["state"], measured["driver"], measured["hypervisor"]) == ("running", "libvirt", "qemu")
    assert measured["cpu_details"][0]["time"] > 0
    assert measured["disk_details"][0]["read_bytes"] > 0
    assert measured["memory_details"] == {"maximum": 32, "used": 32}

    # By now another guest may have its port; a token of before opens nothing.
    old = url_of(servers[0])
    for action in ({"os_stop": None}, {"os_start": None}):
        client.act(servers[0], **action)
        client.settle([servers[0]])
    with pytest.raises(Refused):
        Screen(old)
    client.delete(servers)
    proxy.stop()


def test_reboots_soft_and_hard(client: Client) -> None:
    server = boot(client, "rebooted")
    client.settle([server])
    wait_for(lambda: guest.READY in console(client, server), 60)
    for kind, times in (("SOFT", 2), ("HARD", 3)):
        client.act(server, reboot={"type": kind})
        assert client.settle([server])[0]["status"] == "ACTIVE"
        wait_for(lambda: console(client, server).count(guest.READY) >= times, 60)  # noqa: B023 - waited for in the loop
    client.delete([server])


def test_a_guest_that_dies_by_itself_is_shutoff_within_seconds(
    cloud: Cloud, client: Client, libvirtd: Libvirtd
) -> None:
    server = boot(client, "mortal")
    client.settle([server])
    libvirtd.run(["virsh", "destroy", server])
    wait_for(lambda: client.server(server)["status"] == "SHUTOFF", 5, cloud.logs)
    client.act(server, os_start=None)
    assert client.settle([server])[0]["status"] == "ACTIVE"
    client.delete([server])


def test_what_cannot_be_built_is_explained_and_leaves_nothing(cloud: Cloud, client: Client, libvirtd: Libvirtd) -> None:
    huge = client.boot("huge", client.flavor("x.huge", vcpus=64, ram=64, disk=1), imageRef=client.image("nano"))
    liar = client.boot("liar", client.flavor("x.nano"), imageRef=client.image("liar", b"no disk" * 100))
    settled = {server["name"]: server for server in client.settle([huge, liar])}
    assert "without room for 64 VCPU" in settled["huge"]["fault"]["message"]
    assert settled["liar"]["status"] == "ACTIVE", "a raw image may hold anything"
    client.delete([huge, liar])
    assert not disagreements(cloud.database)
    assert not libvirtd.run(["virsh", "list", "--all", "--uuid"]).strip()


def test_an_image_that_cannot_be_used_is_explained_and_leaves_nothing(
    cloud: Cloud, client: Client, libvirtd: Libvirtd, tmp_path: Path
) -> None:
    large = tmp_path / "large.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(large), "2G"], check=True, timeout=60)
    lost = client.image("lost", bytes(2048))
    (cloud.directory / "state" / "images" / lost).unlink()
    flavor = client.flavor("x.nano")
    reasons = {
        "large": "its disk has 2 GiB, and the flavor's root disk 1",
        "lost": "not in the directory of images on the host",
    }
    images = {"large": client.image("large", large.read_bytes(), disk_format="qcow2"), "lost": lost}
    ids = [client.boot(name, flavor, imageRef=image) for name, image in images.items()]
    for server in client.settle(ids):
        assert server["status"] == "ERROR"
        assert reasons[server["name"]] in server["fault"]["message"], server["fault"]
        (action,) = client.get(f"/servers/{server['id']}/os-instance-actions")["instanceActions"]
        assert reasons[server["name"]] in action["message"]
    assert not disagreements(cloud.database)
    client.delete(ids)
    assert not libvirtd.run(["virsh", "list", "--all", "--uuid"]).strip()
    assert not [path for server in ids for path in (cloud.directory / "state" / "instances").glob(f"{server}*")]


def test_a_hung_libvirtd_takes_its_host_down_and_nothing_else(cloud: Cloud, client: Client, libvirtd: Libvirtd) -> None:
    """Launchpad 1252409: the whole manager hung with its libvirtd, and the host went on looking well."""
    server = boot(client, "patient")
    client.settle([server])
    libvirtd.suspend()
    try:
        cloud.wait_for_hosts("down", patience=90)
        with pytest.raises(ApiError) as refused:
            client.act(server, os_stop=None)
        assert refused.value.status == 409
    finally:
        libvirtd.resume()
    cloud.wait_for_hosts("up", patience=90)
    client.act(server, os_stop=None)
    assert client.settle([server])[0]["status"] == "SHUTOFF"
    client.delete([server])
    assert not disagreements(cloud.database)


def test_a_compute_killed_while_its_guest_runs_finds_it_again(cloud: Cloud, client: Client) -> None:
    server = boot(client, "survivor")
    client.settle([server])
    wait_for(lambda: guest.READY in console(client, server), 60)
    compute = cloud.running("compute")[0]
    compute.kill()
    compute.start_again()
    cloud.wait_for_hosts("up")
    client.act(server, os_stop=None)
    assert client.settle([server])[0]["status"] == "SHUTOFF"
    assert console(client, server).count(guest.READY) == 1
    client.delete([server])

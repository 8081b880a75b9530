# SPDX-License-Identifier: Apache-2.0
"""The life of a real guest: what each call of the driver's interface does to it, and what is left afterwards."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nova_lite import exception
from nova_lite.compute.metadata import MetadataDrive
from nova_lite.objects import instance as states
from nova_lite.virt.driver import Vif
from tests.fixtures import guest as nano
from tests.fixtures.libvirtd import Libvirtd, wait_until
from tests.libvirt.conftest import Events, flavor, make_instance, wait_for_console


def test_guest_boots_from_its_image(driver: Any, image: Path) -> None:
    before = image.read_bytes()
    instance = make_instance()

    driver.spawn(instance, image, [], None)

    wait_for_console(driver, instance, nano.READY)
    assert driver.power_state(instance) == states.RUNNING
    assert [domain.uuid for domain in driver.domains()] == [instance.uuid]
    assert image.read_bytes() == before, "the base image was written to"


def test_spawn_again_leaves_a_running_guest_alone(driver: Any, image: Path, libvirtd: Libvirtd) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)
    pid = qemu_pid(libvirtd, instance.uuid)

    driver.spawn(instance, image, [], None)

    assert qemu_pid(libvirtd, instance.uuid) == pid


def test_spawn_goes_on_where_a_killed_process_left_half_of_the_files(driver: Any, image: Path, tmp_path: Path) -> None:
    instance = make_instance()
    directory = tmp_path / "state/instances" / instance.uuid
    directory.mkdir(parents=True)
    (directory / "disk").write_bytes(b"half of a disk")

    driver.spawn(instance, image, [], None)

    wait_for_console(driver, instance, nano.READY)


def test_disks_are_as_large_as_the_flavor_says(driver: Any, image: Path, tmp_path: Path, libvirtd: Libvirtd) -> None:
    instance = make_instance(flavor=flavor(root_gb=2, ephemeral_gb=1, swap_mb=64))

    driver.spawn(instance, image, [], MetadataDrive(instance))

    wait_for_console(driver, instance, nano.READY)
    directory = tmp_path / "state/instances" / instance.uuid
    assert [virtual_size(directory / name) for name in ("disk", "disk.eph0", "disk.swap")] == [
        2 << 30,
        1 << 30,
        64 << 20,
    ]
    devices = libvirtd.run(["virsh", "domblklist", f"instance-{instance.uuid}"])
    assert [line.split()[0] for line in devices.splitlines()[2:] if line] == ["vda", "vdb", "vdc", "hda"]


def test_stop_asks_the_guest_and_start_boots_it_again(driver: Any, image: Path) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)

    driver.power_off(instance, timeout=30)

    assert driver.power_state(instance) == states.SHUTDOWN
    assert nano.BYE in driver.console_output(instance, None)
    driver.power_off(instance, timeout=30)  # once more is no error

    driver.power_on(instance)

    wait_for_console(driver, instance, nano.READY, count=2)
    driver.power_on(instance)
    assert driver.power_state(instance) == states.RUNNING


def test_stop_takes_the_power_of_a_guest_that_does_not_listen(driver: Any, image: Path, libvirtd: Libvirtd) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)
    with typed(libvirtd, instance.uuid, b"d"):
        wait_for_console(driver, instance, "d")

    began = time.monotonic()
    driver.power_off(instance, timeout=1.0)

    assert 1.0 <= time.monotonic() - began < 10
    assert driver.power_state(instance) == states.SHUTDOWN
    assert nano.BYE not in driver.console_output(instance, None)


@pytest.mark.parametrize("hard", [False, True])
def test_reboot(driver: Any, image: Path, hard: bool) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)

    driver.reboot(instance, hard=hard, timeout=30)

    wait_for_console(driver, instance, nano.READY, count=2)
    assert (nano.BYE in driver.console_output(instance, None)) is not hard


@pytest.mark.parametrize("there", ["pause", "suspend"])
def test_a_stopped_clock_goes_on_where_it_was(driver: Any, image: Path, there: str) -> None:
    back = {"pause": "unpause", "suspend": "resume"}[there]
    during = {"pause": states.POWER_PAUSED, "suspend": states.POWER_SUSPENDED}[there]
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.BEAT)

    getattr(driver, there)(instance)

    assert driver.power_state(instance) == during
    assert [domain.power_state for domain in driver.domains()] == [during]
    getattr(driver, there)(instance)  # once more is no error
    beats = driver.console_output(instance, None).count(nano.BEAT)

    getattr(driver, back)(instance)

    assert driver.power_state(instance) == states.RUNNING
    wait_for_console(driver, instance, nano.BEAT, count=beats + 2)
    assert driver.console_output(instance, None).count(nano.READY) == 1, "it was booted anew"
    getattr(driver, back)(instance)
    assert driver.power_state(instance) == states.RUNNING


def test_a_suspended_guest_outlives_libvirtd(
    make_driver: Callable[..., Any], driver: Any, image: Path, libvirtd: Libvirtd
) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)
    driver.suspend(instance)

    libvirtd.restart()

    later = make_driver()
    wait_until(lambda: _state(later, instance) == states.POWER_SUSPENDED, "the guest to be found suspended")
    later.resume(instance)
    assert later.power_state(instance) == states.RUNNING
    assert later.console_output(instance, None).count(nano.READY) == 1


def _state(driver: Any, instance: Any) -> int | None:
    try:
        return int(driver.power_state(instance))
    except exception.HypervisorUnavailable:
        return None


@pytest.mark.parametrize("there", ["pause", "suspend"])
def test_a_hard_reboot_boots_a_stopped_clock_anew(driver: Any, image: Path, there: str) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)
    getattr(driver, there)(instance)

    driver.reboot(instance, hard=True, timeout=0)

    wait_for_console(driver, instance, nano.READY, count=2)


def test_several_guests_start_at_once(driver: Any, image: Path) -> None:
    instances = [make_instance() for _ in range(4)]

    with ThreadPoolExecutor(len(instances)) as threads:
        list(threads.map(lambda instance: driver.spawn(instance, image, [], None), instances))

    assert {domain.uuid for domain in driver.domains()} == {instance.uuid for instance in instances}
    for instance in instances:
        wait_for_console(driver, instance, nano.READY)


def test_destroy_leaves_nothing(driver: Any, image: Path, tmp_path: Path) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], MetadataDrive(instance))

    driver.destroy(instance)

    assert driver.power_state(instance) == states.NOSTATE
    assert driver.domains() == []
    assert list((tmp_path / "state/instances").iterdir()) == []
    driver.destroy(instance)  # once more is no error


def test_calls_for_a_guest_that_is_not_there(driver: Any) -> None:
    instance = make_instance()

    assert driver.power_state(instance) == states.NOSTATE
    with pytest.raises(exception.DomainNotFound):
        driver.power_on(instance)
    with pytest.raises(exception.DomainNotFound):
        driver.power_off(instance, 0)
    with pytest.raises(exception.DomainNotFound):
        driver.reboot(instance, True, 0)
    for action in (driver.pause, driver.unpause, driver.suspend, driver.resume):
        with pytest.raises(exception.DomainNotFound):
            action(instance)
    with pytest.raises(exception.DomainNotFound):
        driver.console_output(instance, None)


def test_guest_that_powers_itself_off_is_reported(driver: Any, image: Path, libvirtd: Libvirtd, events: Events) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)
    events.forget()

    with typed(libvirtd, instance.uuid, b"q"):
        events.wait_for(instance.uuid, timeout=5)
    wait_until(lambda: driver.power_state(instance) == states.SHUTDOWN, "the guest to be off")


def test_guest_whose_qemu_dies_is_reported(driver: Any, image: Path, libvirtd: Libvirtd, events: Events) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    events.forget()

    libvirtd.run(["kill", "-9", qemu_pid(libvirtd, instance.uuid)])

    events.wait_for(instance.uuid, timeout=5)
    wait_until(lambda: driver.power_state(instance) in (states.SHUTDOWN, states.CRASHED), "the guest to be off")


def test_qemu_that_hangs_can_be_stopped(make_driver: Callable[..., Any], image: Path, libvirtd: Libvirtd) -> None:
    driver = make_driver(call_timeout=20.0)
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    libvirtd.run(["kill", "-STOP", qemu_pid(libvirtd, instance.uuid)])

    driver.power_off(instance, timeout=1.0)

    assert driver.power_state(instance) == states.SHUTDOWN


def test_console_shows_the_last_lines(driver: Any, image: Path) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.BEAT, count=2)
    driver.power_off(instance, 0)

    everything = driver.console_output(instance, None)

    lines = everything.removesuffix("\n").split("\n")
    assert driver.console_output(instance, 2) == "\n".join(lines[-2:])
    assert driver.console_output(instance, 0) == ""
    assert driver.console_output(instance, 10_000) == "\n".join(lines)


def test_config_drive_reads_back(driver: Any, image: Path, tmp_path: Path) -> None:
    script = b"#!/bin/sh\necho hello\n"
    instance = make_instance(
        metadata={"role": "web"},
        key_name="mine",
        key_data="ssh-ed25519 AAAA",
        user_data=base64.b64encode(script).decode(),
    )

    driver.spawn(instance, image, [], MetadataDrive(instance, {"links": [], "networks": [], "services": []}))

    iso, out = tmp_path / "state/instances" / instance.uuid / "disk.config", tmp_path / "read"
    read = ["xorriso", "-osirrox", "on", "-indev", str(iso), "-extract", "/", str(out)]
    log = subprocess.run(read, check=True, capture_output=True, text=True).stderr
    assert "config-2" in log
    latest = out / "openstack/latest"
    meta = json.loads((latest / "meta_data.json").read_text())
    assert (meta["uuid"], meta["name"], meta["hostname"]) == (instance.uuid, "nano <one>", "nano-one")
    assert (meta["meta"], meta["public_keys"]) == ({"role": "web"}, {"mine": "ssh-ed25519 AAAA"})
    assert (latest / "user_data").read_bytes() == script
    assert json.loads((latest / "network_data.json").read_text())["links"] == []
    assert sorted(path.name for path in (out / "openstack").iterdir()) == ["2018-08-27", "latest"]


def test_domains_of_others_are_left_alone(driver: Any, image: Path, libvirtd: Libvirtd, tmp_path: Path) -> None:
    instance = make_instance()
    xml = tmp_path / "other.xml"
    xml.write_text(
        f"<domain type='qemu'><name>instance-{instance.uuid}</name><uuid>{instance.uuid}</uuid><memory>16384</memory>"
        "<os><type arch='x86_64'>hvm</type></os></domain>"
    )
    libvirtd.run(["virsh", "define", str(xml)])
    try:
        assert driver.domains() == []
        driver.destroy(instance)
        assert instance.uuid in libvirtd.run(["virsh", "list", "--all", "--uuid"])
    finally:
        libvirtd.run(["virsh", "undefine", instance.uuid])


def test_failed_spawn_says_why_and_leaves_nothing(driver: Any, image: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.qcow2"
    broken.write_bytes(image.read_bytes()[:4096])
    cases = [
        (make_instance(flavor=flavor(memory_mb=64 << 20)), image, [], "memory"),
        (make_instance(), image, [Vif("p" * 36, "52:54:00:00:00:01", "no-such-br")], "no-such-br"),
        (make_instance(), tmp_path / "missing", [], "No such file"),
    ]
    for instance, base, vifs, reason in cases:
        with pytest.raises(exception.BuildFailed, match=reason) as failure:
            driver.spawn(instance, base, vifs, None)

        assert str(tmp_path) not in str(failure.value), "a path of the host is shown to the user"
        assert driver.domains() == []
        assert not (tmp_path / "state/instances" / instance.uuid).exists()


def test_inventory_describes_the_host(driver: Any, libvirtd: Libvirtd) -> None:
    [node] = driver.inventory()

    assert (node.node, node.hypervisor_type) == (libvirtd.hostname, "QEMU")
    assert node.hypervisor_version >= 7_000_000
    assert node.total.vcpus >= 1 and node.total.memory_mb > 256 and node.total.disk_gb > 0
    assert "x86_64" in node.architectures
    assert set(node.cpu_info) == {"arch", "model", "vendor", "topology", "features"}
    assert node.uuid == driver.inventory()[0].uuid


def qemu_pid(libvirtd: Libvirtd, uuid: str) -> str:
    """Return the process id of the guest's QEMU inside the host."""
    return libvirtd.run(["cat", f"/run/libvirt/qemu/instance-{uuid}.pid"]).strip()


@contextmanager
def typed(libvirtd: Libvirtd, uuid: str, text: bytes) -> Iterator[None]:
    """Send text to the guest's serial port; QEMU takes it only while the other end of the terminal stays open."""
    terminal = os.open(libvirtd.run(["virsh", "ttyconsole", f"instance-{uuid}"]).strip(), os.O_RDWR | os.O_NOCTTY)
    try:
        os.write(terminal, text)
        yield
    finally:
        os.close(terminal)


def virtual_size(path: Path) -> int:
    """Return the bytes of the disk in the file."""
    shown = subprocess.run(["qemu-img", "info", "-U", "--output=json", path], check=True, capture_output=True).stdout
    size: int = json.loads(shown)["virtual-size"]
    return size

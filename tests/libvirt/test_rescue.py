# SPDX-License-Identifier: Apache-2.0
"""Rescues of real guests: another disk boots, the own one is beside it, and everything is as before afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from nova_lite import exception
from nova_lite.compute.metadata import MetadataDrive
from nova_lite.objects import instance as states
from tests.fixtures import guest as nano
from tests.fixtures.libvirtd import Libvirtd, wait_until
from tests.libvirt.conftest import flavor, make_instance, wait_for_console


def disks(libvirtd: Libvirtd, uuid: str) -> dict[str, str]:
    """Return target -> name of the file of a running domain's disks."""
    found = ElementTree.fromstring(libvirtd.run(["virsh", "dumpxml", f"instance-{uuid}"])).iterfind("devices/disk")
    named = {}
    for disk in found:
        source, target = disk.find("source"), disk.find("target")
        assert source is not None and target is not None
        named[target.get("dev", "")] = Path(source.get("file", "")).name
    return named


def own_xml(libvirtd: Libvirtd, uuid: str) -> str:
    return libvirtd.run(["virsh", "dumpxml", "--inactive", "--security-info", f"instance-{uuid}"])


def test_the_rescue_disk_boots_and_the_own_one_is_second(
    driver: Any, image: Path, tmp_path: Path, libvirtd: Libvirtd
) -> None:
    instance = make_instance(flavor=flavor(ephemeral_gb=1))
    driver.spawn(instance, image, [], MetadataDrive(instance))
    wait_for_console(driver, instance, nano.READY)
    before = own_xml(libvirtd, instance.uuid)

    driver.rescue(instance, image, 0)

    wait_for_console(driver, instance, nano.READY, count=2)
    assert disks(libvirtd, instance.uuid) == {
        "vda": "disk.rescue",
        "vdb": "disk",
        "vdc": "disk.eph0",
        "hda": "disk.config",
    }
    driver.rescue(instance, image, 0)  # once more is no error, and no boot
    assert driver.console_output(instance, None).count(nano.READY) == 2

    driver.unrescue(instance)

    wait_for_console(driver, instance, nano.READY, count=3)
    assert own_xml(libvirtd, instance.uuid) == before
    left = {path.name for path in (tmp_path / "state/instances" / instance.uuid).iterdir()}
    assert not left & {"disk.rescue", "unrescue.xml", "unrescue.partial"}
    driver.unrescue(instance)
    assert driver.console_output(instance, None).count(nano.READY) == 3


def test_what_is_on_the_rescue_disk_is_what_boots(driver: Any, image: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.raw"
    broken.write_bytes(bytes(1 << 20))
    instance = make_instance()
    driver.spawn(instance, broken, [], None)

    driver.rescue(instance, image, 0)

    wait_for_console(driver, instance, nano.READY)
    assert driver.power_state(instance) == states.RUNNING


def test_a_rescue_outlives_libvirtd_and_the_compute(
    make_driver: Callable[..., Any], driver: Any, image: Path, libvirtd: Libvirtd
) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    before = own_xml(libvirtd, instance.uuid)
    driver.rescue(instance, image, 0)

    libvirtd.restart()
    later = make_driver()
    wait_until(lambda: _state(later, instance) == states.RUNNING, "the rescued guest to be found")

    later.unrescue(instance)

    assert own_xml(libvirtd, instance.uuid) == before
    assert disks(libvirtd, instance.uuid)["vda"] == "disk"


def _state(driver: Any, instance: Any) -> int | None:
    try:
        return int(driver.power_state(instance))
    except exception.HypervisorUnavailable:
        return None


@pytest.mark.parametrize("there", [False, True])
def test_a_rescue_that_fails_boots_the_server_as_before(
    driver: Any, image: Path, tmp_path: Path, libvirtd: Libvirtd, there: bool
) -> None:
    instance, broken = make_instance(), tmp_path / "broken.qcow2"
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)
    before = own_xml(libvirtd, instance.uuid)
    if there:  # but points to another file
        create = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", image, "-F", "qcow2", broken]
        subprocess.run(create, check=True)

    with pytest.raises(exception.RescueFailed) as failure:
        driver.rescue(instance, broken, 0)

    assert str(tmp_path) not in str(failure.value)
    wait_for_console(driver, instance, nano.READY, count=2)
    assert own_xml(libvirtd, instance.uuid) == before
    assert not (tmp_path / "state/instances" / instance.uuid / "unrescue.xml").exists()


def test_a_rescued_server_leaves_nothing_when_it_is_deleted(driver: Any, image: Path, tmp_path: Path) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    driver.rescue(instance, image, 0)

    driver.destroy(instance)

    assert driver.domains() == []
    assert list((tmp_path / "state/instances").iterdir()) == []


def test_a_server_that_is_not_there_cannot_be_rescued(driver: Any, image: Path) -> None:
    with pytest.raises(exception.DomainNotFound):
        driver.rescue(make_instance(), image, 0)
    with pytest.raises(exception.DomainNotFound):
        driver.unrescue(make_instance())

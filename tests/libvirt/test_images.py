# SPDX-License-Identifier: Apache-2.0
"""Images of real guests: taken while they run, and good to boot from."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nova_lite import exception
from nova_lite.image.inspection import inspect
from nova_lite.objects import instance as states
from tests.fixtures import guest as nano
from tests.fixtures.libvirtd import Libvirtd
from tests.libvirt.conftest import make_instance, wait_for_console

_NEVER = lambda: False  # noqa: E731


@pytest.fixture
def large_image(image: Path, tmp_path: Path) -> Path:
    """The nano guest with so much on its disk that copying it takes a moment."""
    raw, made = tmp_path / "large.raw", tmp_path / "large.qcow2"
    subprocess.run(["qemu-img", "convert", "-O", "raw", image, raw], check=True)
    with raw.open("r+b") as file:
        file.seek(1 << 20)
        for _ in range(256):
            file.write(os.urandom(1 << 20))
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, made], check=True)
    return made


def same(one: Path, other: Path) -> bool:
    """Tell whether two disks have the same content; what only one of them has must be zeros."""
    return subprocess.run(["qemu-img", "compare", "-U", one, other], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("state", "power_state"),
    [
        ("run", states.RUNNING),
        ("pause", states.POWER_PAUSED),
        ("suspend", states.POWER_SUSPENDED),
        ("stop", states.SHUTDOWN),
    ],
)
def test_a_copy_is_flat_and_boots_and_the_guest_does_not_notice(
    driver: Any, image: Path, tmp_path: Path, libvirtd: Libvirtd, state: str, power_state: int
) -> None:
    instance, copy = make_instance(), tmp_path / "copy.qcow2"
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)
    if state == "stop":
        driver.power_off(instance, 0)
    elif state != "run":
        getattr(driver, state)(instance)

    driver.snapshot(instance, copy, _NEVER)

    assert driver.power_state(instance) == power_state
    facts = inspect(copy, "qcow2")  # refuses a backing file
    assert facts.virtual_size == 1 << 30
    assert same(image, copy)
    if state == "run":
        beats = driver.console_output(instance, None).count(nano.BEAT)
        wait_for_console(driver, instance, nano.BEAT, count=beats + 1)
        assert driver.console_output(instance, None).count(nano.READY) == 1
    other = make_instance()
    driver.spawn(other, copy, [], None)
    wait_for_console(driver, other, nano.READY)


def test_a_copy_that_nobody_wants_any_more_is_broken_off(
    driver: Any, large_image: Path, tmp_path: Path, libvirtd: Libvirtd
) -> None:
    instance, copy = make_instance(), tmp_path / "copy.qcow2"
    driver.spawn(instance, large_image, [], None)

    with pytest.raises(exception.SnapshotFailed, match="being deleted"):
        driver.snapshot(instance, copy, lambda: True)

    assert "None" in libvirtd.run(["virsh", "domjobinfo", f"instance-{instance.uuid}"])
    driver.snapshot(instance, copy, _NEVER)
    assert same(large_image, copy)


def test_a_copy_that_a_dead_process_has_begun_gives_way(
    driver: Any, large_image: Path, tmp_path: Path, libvirtd: Libvirtd
) -> None:
    instance, left, copy = make_instance(), tmp_path / "left.qcow2", tmp_path / "copy.qcow2"
    driver.spawn(instance, large_image, [], None)
    xml = tmp_path / "backup.xml"
    xml.write_text(
        "<domainbackup mode='push'><disks><disk name='vda' type='file'><driver type='qcow2'/>"
        f"<target file='{left}'/></disk></disks></domainbackup>"
    )
    libvirtd.run(["virsh", "backup-begin", f"instance-{instance.uuid}", str(xml)])

    driver.snapshot(instance, copy, _NEVER)

    assert same(large_image, copy)


def test_a_guest_that_is_not_there_has_no_copy(driver: Any, tmp_path: Path) -> None:
    with pytest.raises(exception.DomainNotFound):
        driver.snapshot(make_instance(), tmp_path / "copy", _NEVER)

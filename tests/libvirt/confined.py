# SPDX-License-Identifier: Apache-2.0
"""A guest's life by a driver without root's rights: ``python -m tests.libvirt.confined STATE URI IMAGE``.

Prints each step that went well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from oslo_config import cfg

from nova_lite import conf as nova_conf
from nova_lite.compute.metadata import MetadataDrive
from nova_lite.virt.libvirt.driver import LibvirtDriver
from tests.fixtures import guest
from tests.libvirt.conftest import make_instance, wait_for_console


def main(state: Path, uri: str, image: Path) -> None:
    conf = cfg.ConfigOpts()
    nova_conf.register(conf)
    conf([], project="nova-lite", default_config_files=[])
    conf.set_override("state_path", str(state))
    conf.set_override("connection_uri", uri, "libvirt")
    conf.set_override("virt_type", "qemu", "libvirt")
    cached, snapshots = state / "image", state / "snapshots"
    cached.write_bytes(image.read_bytes())
    snapshots.mkdir()
    driver, instance = LibvirtDriver(conf), make_instance(config_drive=True)
    driver.start(lambda _uuid: None)
    steps: dict[str, Callable[[], object]] = {
        "spawn": lambda: driver.spawn(instance, cached, [], MetadataDrive(instance)),
        "console": lambda: wait_for_console(driver, instance, guest.READY),
        "snapshot": lambda: driver.snapshot(instance, snapshots / "running", lambda: False),
        "suspend": lambda: driver.suspend(instance),
        "resume": lambda: driver.resume(instance),
        "power off": lambda: driver.power_off(instance, 0),
        "snapshot of what is off": lambda: driver.snapshot(instance, snapshots / "off", lambda: False),
        "rescue": lambda: driver.rescue(instance, cached, 0),
        "unrescue": lambda: driver.unrescue(instance),
        "power on": lambda: driver.power_on(instance),
        "destroy": lambda: driver.destroy(instance),
    }
    try:
        for name, step in steps.items():
            step()
            print(name, flush=True)
    finally:
        driver.stop()
    print(f"left: {[path.name for path in (state / 'instances').iterdir()]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))

# SPDX-License-Identifier: Apache-2.0
"""A server that does not boot any more is booted from another disk, with its own beside it, and later as before.

The server's own definition is kept as a file next to its disks for as long as the rescue lasts, and is what unrescue
defines again: neither this process nor libvirtd has to remember anything. The file is written before the other
definition is made, and removed after the server's own runs again.
"""

from __future__ import annotations

import logging
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import libvirt

from nova_lite import exception
from nova_lite.image import inspection, qemu_img
from nova_lite.objects import instance as states
from nova_lite.virt.libvirt.connection import HypervisorRefused
from nova_lite.virt.libvirt.guest import Guest
from nova_lite.virt.libvirt.reasons import without_paths

LOG = logging.getLogger(__name__)

_DISK = "disk.rescue"
_DEFINITION = "unrescue.xml"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Rescue:
    """What a rescue leaves in an instance's directory."""

    def __init__(self, directory: Path) -> None:
        self.disk = directory / _DISK
        self._definition = directory / _DEFINITION

    def definition(self) -> str | None:
        """Return the server's own definition, None if it is not rescued."""
        try:
            return self._definition.read_text()
        except FileNotFoundError:
            return None

    def keep_definition(self, xml: str) -> None:
        """Keep the server's own definition; it appears whole or not at all. It may name secrets."""
        partial = self._definition.with_suffix(".partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(xml)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(self._definition)

    def make_disk(self, image: Path) -> None:
        """Make the disk to boot from anew, as large as the image.

        :raises RescueFailed:
        """
        try:
            self.disk.unlink(missing_ok=True)
            facts = inspection.inspect(image)
            base: list[str | Path] = ["-b", str(image.absolute()), "-F", facts.format]
            qemu_img.run(["create", "-q", "-f", "qcow2", *base, self.disk, str(facts.virtual_size)])
        except (OSError, qemu_img.QemuImgError) as error:
            reason = (error.strerror or "I/O error") if isinstance(error, OSError) else without_paths(str(error))
            raise exception.RescueFailed(reason=f"its disk could not be made on the host ({reason}).") from error

    def remove(self) -> None:
        """Remove all that the rescue has left; the definition last, for whoever has to do this again."""
        self.disk.unlink(missing_ok=True)
        self._definition.unlink(missing_ok=True)


def own_definition(found: Guest) -> str:
    """Return the definition of a domain as it would be started."""
    xml: str = found.domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE)
    return xml


def rescue_xml(own: str, disk: Path) -> str:
    """Return the definition of a domain that boots from the disk, with the disks of its own after it.

    The disks' addresses are left to libvirt, which gives them in the order of the disks.
    """
    domain = ElementTree.fromstring(own)
    devices = domain.find("devices")
    if devices is None:
        raise exception.RescueFailed(reason="its definition has no devices.")
    own_disks = [each for each in devices.findall("disk") if each.get("device", "disk") == "disk"]
    target = own_disks[0].find("target") if own_disks else None
    bus, name = ("virtio", "vda") if target is None else (target.get("bus", "virtio"), target.get("dev", "vda"))
    prefix = name[:2]
    for each in devices.findall("disk"):
        _move_along(each, prefix)
    made = ElementTree.Element("disk", type="file", device="disk")
    driver = ElementTree.SubElement(made, "driver", name="qemu", type="qcow2")
    own_driver = own_disks[0].find("driver") if own_disks else None
    if own_driver is not None and own_driver.get("cache"):
        driver.set("cache", str(own_driver.get("cache")))
    ElementTree.SubElement(made, "source", file=str(disk))
    ElementTree.SubElement(made, "target", dev=f"{prefix}a", bus=bus)
    devices.insert(0, made)
    return ElementTree.tostring(domain, encoding="unicode")


def _move_along(disk: ElementTree.Element, prefix: str) -> None:
    """Give a disk the next letter, if it is among those that the new one goes before."""
    target, address = disk.find("target"), disk.find("address")
    if target is None or not target.get("dev", "").startswith(prefix):
        return
    letter = target.get("dev", "")[2:3]
    target.set("dev", prefix + _LETTERS[_LETTERS.index(letter) + 1])
    if address is not None:
        disk.remove(address)


def begin(
    files: Rescue,
    image: Path,
    *,
    look: Callable[[], tuple[int, str]],
    power_off: Callable[[], None],
    start: Callable[[str], None],
) -> None:
    """Boot a server from a disk made of the image; done before is no error.

    What goes wrong gives the server its own definition back, and its power if it had some.

    :param look: tells the power state and the definition of the domain as it is.
    :param start: defines a domain and starts it.
    :raises RescueFailed:
    """
    power_state, definition = look()
    own = files.definition()
    if own is not None and str(files.disk) in definition and power_state == states.RUNNING:
        return
    power_off()
    if own is None:
        own = definition
        files.keep_definition(own)
    try:
        files.make_disk(image)
        start(rescue_xml(own, files.disk))
    except (HypervisorRefused, exception.RescueFailed, exception.ImageUnacceptable) as error:
        LOG.error("Not rescued disk=%s reason=%s", files.disk, error)
        start(own)
        files.remove()
        if isinstance(error, exception.RescueFailed):
            raise
        raise exception.RescueFailed(reason=without_paths(str(error))) from error

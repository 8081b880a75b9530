# SPDX-License-Identifier: Apache-2.0
"""The definition of a domain as the destination of its migration needs it: other paths, bridges, address of the screen.

All else stays: libvirt refuses a definition in which the guest would see another machine.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

from nova_lite.virt.libvirt import domain_xml  # noqa: F401 - gives our metadata their prefix


def for_destination(
    definition: str, here: Path, there: Path, vnc_listen: str | None, bridges: Mapping[str, str | None]
) -> str:
    """Return the definition for the destination.

    :param here: the instance's directory at the source.
    :param there: the same at the destination.
    :param vnc_listen: the destination's address for screens; None if it gives guests none, and this one keeps its own.
    :param bridges: the destination's bridges by the MAC addresses of the interfaces that they are for.
    """
    domain = ElementTree.fromstring(definition)
    for element in domain.iter():
        if element.tag in ("source", "log") and "file" in element.attrib:
            element.set("file", _moved(element.attrib["file"], here, there))
    # What libvirt has found out about the disks' backing files is true of the source's alone.
    for disk in domain.iterfind("devices/disk"):
        for backing in disk.findall("backingStore"):
            disk.remove(backing)
    for interface in domain.iterfind("devices/interface"):
        _set_bridge(interface, bridges)
    for screen in domain.iterfind("devices/graphics"):
        if vnc_listen is not None:
            _set_listen(screen, vnc_listen)
    return ElementTree.tostring(domain, encoding="unicode")


def _moved(path: str, here: Path, there: Path) -> str:
    """Return where a file of the instance's directory is at the destination; other files are where they are."""
    try:
        return str(there / Path(path).relative_to(here))
    except ValueError:
        return path


def _set_bridge(interface: ElementTree.Element, bridges: Mapping[str, str | None]) -> None:
    mac, source = interface.find("mac"), interface.find("source")
    bridge = bridges.get(mac.get("address", "").lower()) if mac is not None else None
    if bridge is not None and source is not None and "bridge" in source.attrib:
        source.set("bridge", bridge)


def _set_listen(screen: ElementTree.Element, address: str) -> None:
    screen.set("listen", address)
    for listen in screen.iterfind("listen[@type='address']"):
        listen.set("address", address)

# SPDX-License-Identifier: Apache-2.0
"""What of a domain's definition becomes the destination's, and what does not."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from nova_lite.virt.libvirt.destination_xml import for_destination

HERE, THERE = Path("/here/1"), Path("/there/1")

DEFINITION = """\
<domain type="kvm">
  <metadata><nl:instance xmlns:nl="https://opendev.org/nova-lite/xmlns/instance/1.0"/></metadata>
  <devices>
    <disk type="file" device="disk">
      <source file="/here/1/disk"/>
      <backingStore type="file"><format type="qcow2"/><source file="/here/images/base"/></backingStore>
    </disk>
    <disk type="file" device="cdrom"><source file="/elsewhere/tools.iso"/></disk>
    <interface type="bridge"><mac address="52:54:00:00:00:AA"/><source bridge="br-here"/></interface>
    <interface type="bridge"><mac address="52:54:00:00:00:bb"/><source bridge="br-here"/></interface>
    <serial type="pty"><log file="/here/1/console.log" append="on"/></serial>
    <graphics type="vnc" listen="192.0.2.1"><listen type="address" address="192.0.2.1"/></graphics>
  </devices>
</domain>
"""


def adapted(vnc_listen: str | None = "192.0.2.2", bridges: dict[str, str | None] | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(for_destination(DEFINITION, HERE, THERE, vnc_listen, bridges or {}))


def test_paths_of_the_instance_are_the_destination_s() -> None:
    domain = adapted()

    assert [source.get("file") for source in domain.iterfind("devices/disk/source")] == [
        "/there/1/disk",
        "/elsewhere/tools.iso",
    ]
    assert domain.find("devices/serial/log").attrib == {"file": "/there/1/console.log", "append": "on"}  # type: ignore[union-attr]


def test_the_source_s_backing_files_are_not_told() -> None:
    assert adapted().find("devices/disk/backingStore") is None


def test_bridges_go_by_the_address() -> None:
    domain = adapted(bridges={"52:54:00:00:00:aa": "br-there"})

    assert [source.get("bridge") for source in domain.iterfind("devices/interface/source")] == ["br-there", "br-here"]


def test_the_screen_listens_at_the_destination_s_address() -> None:
    for address, seen in (("192.0.2.2", "192.0.2.2"), (None, "192.0.2.1")):
        screen = adapted(vnc_listen=address).find("devices/graphics")

        assert screen is not None
        assert (screen.get("listen"), screen.find("listen").get("address")) == (seen, seen)  # type: ignore[union-attr]

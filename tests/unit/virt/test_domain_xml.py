# SPDX-License-Identifier: Apache-2.0
"""The definition of a domain: what follows from the flavor, the image and the settings."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nova_lite import exception
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.image import Image
from nova_lite.objects.instance import Instance
from nova_lite.virt.driver import Vif
from nova_lite.virt.libvirt.disks import CDROM, Drive
from nova_lite.virt.libvirt.domain_xml import METADATA_URI, Machine, domain_xml, is_our_name

UUID = "6f2f5d6c-0000-4000-8000-00000000000a"
EMULATED = Machine(virt_type="qemu")
DRIVES = [Drive(Path("/i/disk"), "qcow2"), Drive(Path("/i/disk.swap"), "raw"), Drive(Path("/i/c"), "raw", CDROM)]


def instance(properties: dict[str, str] | None = None, **changes: Any) -> Instance:
    flavor = Flavor("1", "small", vcpus=2, memory_mb=128, root_gb=1)
    image = Image(id="img", properties=properties or {})
    values = {"name": "n", "hostname": "n", "project_id": "p", "user_id": "u", "node": "h", "host": "h"}
    return Instance(uuid=UUID, flavor=flavor, image=image, **{**values, **changes})


def define(
    what: Instance, machine: Machine = EMULATED, drives: Sequence[Drive] = DRIVES, vifs: Sequence[Vif] = ()
) -> ElementTree.Element:
    return ElementTree.fromstring(domain_xml(what, machine, drives, vifs, Path("/i/console.log")))


def targets(domain: ElementTree.Element) -> list[tuple[str | None, str | None]]:
    return [(target.get("dev"), target.get("bus")) for target in domain.iterfind("devices/disk/target")]


def test_flavor_and_identity() -> None:
    domain = define(instance())

    assert domain.findtext("uuid") == UUID
    assert domain.findtext("name") == f"instance-{UUID}"
    assert is_our_name(f"instance-{UUID}", UUID) and not is_our_name("instance-00000001", UUID)
    assert (domain.findtext("memory"), domain.find("memory").get("unit")) == ("128", "MiB")  # type: ignore[union-attr]
    assert domain.findtext("vcpu") == "2"
    assert domain.findtext(f"metadata/{{{METADATA_URI}}}instance/{{{METADATA_URI}}}flavor") == "small"


def test_any_name_of_a_server_makes_good_xml() -> None:
    domain = define(instance(name="<&\"'> \x00\x08\ud800 ünï 🙂"))

    assert domain.findtext(f".//{{{METADATA_URI}}}name") == "<&\"'>  ünï 🙂"


def test_emulation_has_a_small_cache_and_no_host_cpu() -> None:
    domain = define(instance())

    assert domain.get("type") == "qemu"
    assert domain.findtext("features/tcg/tb-cache") == "32"
    cpu = domain.find("cpu")
    assert cpu is not None and cpu.get("mode") is None


def test_kvm_has_a_cpu_like_the_hosts_unless_told_otherwise() -> None:
    default = define(instance(), Machine("kvm"))
    custom = define(instance(), Machine("kvm", cpu_mode="custom", cpu_model="Skylake-Server"))

    assert default.get("type") == "kvm" and default.find("features/tcg") is None
    assert default.find("cpu[@mode='host-model']") is not None
    assert custom.findtext("cpu[@mode='custom']/model") == "Skylake-Server"


def test_disks_in_order_and_the_config_drive_as_a_cdrom() -> None:
    assert targets(define(instance())) == [("vda", "virtio"), ("vdb", "virtio"), ("hda", "ide")]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"hw_disk_bus": "ide"}, [("hda", "ide"), ("hdb", "ide"), ("hdc", "ide")]),
        ({"hw_disk_bus": "scsi"}, [("sda", "scsi"), ("sdb", "scsi"), ("hda", "ide")]),
        ({"hw_disk_bus": "sata", "hw_machine_type": "q35"}, [("sda", "sata"), ("sdb", "sata"), ("sdc", "sata")]),
        ({"hw_machine_type": "q35"}, [("vda", "virtio"), ("vdb", "virtio"), ("sda", "sata")]),
    ],
)
def test_images_choose_buses(properties: dict[str, str], expected: list[tuple[str, str]]) -> None:
    domain = define(instance(properties))

    assert targets(domain) == expected
    has_scsi = domain.find("devices/controller[@model='virtio-scsi']") is not None
    assert has_scsi == any(bus == "scsi" for _, bus in expected)


@pytest.mark.parametrize("name", ["hw_disk_bus", "hw_cdrom_bus", "hw_vif_model"])
def test_image_that_asks_for_unknown_hardware_is_unacceptable(name: str) -> None:
    with pytest.raises(exception.ImageUnacceptable, match=f"{name} is 'floppy'"):
        define(instance({name: "floppy"}), vifs=[Vif("p" * 36, "fa:16:3e:00:00:01", "br0")])


def test_interface_on_a_bridge() -> None:
    port = "0d9e6b55-0000-4000-8000-000000000001"
    domain = define(instance(), vifs=[Vif(port, "fa:16:3e:00:00:01", "br0", 1400), Vif(port, "fa:16:3e:00:00:02")])

    [interface] = domain.findall("devices/interface")
    parts = {child.tag: child.attrib for child in interface}
    assert parts == {
        "mac": {"address": "fa:16:3e:00:00:01"},
        "source": {"bridge": "br0"},
        "target": {"dev": "tap0d9e6b55-00"},
        "model": {"type": "virtio"},
        "mtu": {"size": "1400"},
    }


def test_screen_listens_on_loopback_or_is_left_out() -> None:
    with_screen = define(instance())
    without = define(instance(), dataclasses.replace(EMULATED, vnc_listen=None))

    assert [graphics.get("listen") for graphics in with_screen.iterfind("devices/graphics")] == ["127.0.0.1"]
    assert without.find("devices/graphics") is None and without.find("devices/video") is None


def test_serial_console_goes_to_the_log() -> None:
    log = define(instance()).find("devices/serial/log")

    assert log is not None and log.attrib == {"file": "/i/console.log", "append": "on"}

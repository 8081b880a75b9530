# SPDX-License-Identifier: Apache-2.0
"""The definition of a domain, as a pure function of the instance, its files and the settings.

The elements and their meaning are those of https://libvirt.org/formatdomain.html; properties of images that change
the hardware have the names and values that Glance's metadata definitions give them (hw_*).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

from nova_lite import exception
from nova_lite.objects.instance import Instance
from nova_lite.virt.driver import Vif
from nova_lite.virt.libvirt.disks import DISK, Drive

METADATA_URI = "https://opendev.org/nova-lite/xmlns/instance/1.0"
ElementTree.register_namespace("nova-lite", METADATA_URI)

_X86 = ("x86_64", "i686")
_TARGET_PREFIX = {"virtio": "vd", "scsi": "sd", "sata": "sd", "ide": "hd"}
_DISK_BUSES = tuple(_TARGET_PREFIX)
_VIF_MODELS = ("virtio", "e1000", "e1000e", "rtl8139", "ne2k_pci", "pcnet")
_TAP_LENGTH = 14  # of the 15 that Linux allows in the name of an interface; OpenStack's are so long

# What is a character to Python and none to XML: control characters, halves of surrogate pairs, two of no meaning.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Machine:
    """The settings of [libvirt] that shape a domain; arch is the host's."""

    virt_type: str
    arch: str = "x86_64"
    cpu_mode: str | None = None
    cpu_model: str | None = None
    machine_type: str = "pc"
    disk_cache: str = "none"
    tcg_cache_mb: int = 32
    vnc_listen: str | None = "127.0.0.1"


def domain_name(uuid: str) -> str:
    """Return the name of an instance's domain."""
    return f"instance-{uuid}"


def is_our_name(name: str, uuid: str) -> bool:
    """Tell whether the name is one that we would have given; a cheap first look, metadata decide."""
    return name == domain_name(uuid)


def domain_xml(
    instance: Instance, machine: Machine, drives: Sequence[Drive], vifs: Sequence[Vif], console_log: Path
) -> str:
    """Return the domain's definition.

    :raises ImageUnacceptable: the image asks for hardware that there is not.
    """
    domain = Element("domain", type=machine.virt_type)
    _text(domain, "name", domain_name(instance.uuid))
    _text(domain, "uuid", instance.uuid)
    _add_metadata(domain, instance)
    _text(domain, "memory", instance.flavor.memory_mb, unit="MiB")
    _text(domain, "vcpu", instance.flavor.vcpus)
    machine_type = _property(instance, "hw_machine_type", machine.machine_type, None)
    _add_firmware(domain, instance, machine, machine_type)
    _add_cpu(domain, instance, machine)
    _add_clock(domain, machine)
    _text(domain, "on_poweroff", "destroy")
    _text(domain, "on_reboot", "restart")
    _text(domain, "on_crash", "destroy")
    devices = SubElement(domain, "devices")
    _add_drives(devices, instance, machine, drives, machine_type)
    for vif in vifs:
        _add_interface(devices, instance, vif)
    _add_console(devices, console_log)
    _add_screen(devices, machine)
    _add_small_devices(devices)
    return ElementTree.tostring(domain, encoding="unicode")


def _text(parent: Element, tag: str, text: object, **attributes: str) -> Element:
    element = SubElement(parent, tag, attributes)
    element.text = str(text)
    return element


def _property(instance: Instance, name: str, default: str, allowed: Sequence[str] | None) -> str:
    value = instance.image.properties.get(name) if instance.image else None
    if not value:
        return default
    if allowed is not None and value not in allowed:
        assert instance.image is not None
        raise exception.ImageUnacceptable(
            image=instance.image.id, reason=f"its property {name} is {value!r}, and not one of {', '.join(allowed)}."
        )
    return value


def _add_metadata(domain: Element, instance: Instance) -> None:
    """Mark the domain as ours, and note what a person at virsh wants to know."""
    ours = SubElement(SubElement(domain, "metadata"), f"{{{METADATA_URI}}}instance")
    for tag, text in (
        ("name", instance.name),
        ("flavor", instance.flavor.name),
        ("project", instance.project_id),
        ("user", instance.user_id),
    ):
        _text(ours, f"{{{METADATA_URI}}}{tag}", _printable(text))


def _printable(text: str) -> str:
    """Drop what XML 1.0 cannot carry; a server's name may have any character."""
    return _NOT_XML.sub("", text)


def _add_firmware(domain: Element, instance: Instance, machine: Machine, machine_type: str) -> None:
    """Say what machine it is, and who made it: cloud-init knows an OpenStack guest by its SMBIOS."""
    system = SubElement(domain, "os")
    kind = _text(system, "type", "hvm", arch=machine.arch)
    features = SubElement(domain, "features")
    SubElement(features, "acpi")
    if machine.arch in _X86:
        kind.set("machine", machine_type)
        SubElement(system, "smbios", mode="sysinfo")
        sysinfo = SubElement(SubElement(domain, "sysinfo", type="smbios"), "system")
        for name, value in (
            ("manufacturer", "OpenStack Foundation"),
            ("product", "OpenStack Nova"),
            ("serial", instance.uuid),
            ("uuid", instance.uuid),
            ("family", "Virtual Machine"),
        ):
            _text(sysinfo, "entry", value, name=name)
        SubElement(features, "apic")
    SubElement(system, "boot", dev="hd")
    if machine.virt_type == "qemu":
        _text(SubElement(features, "tcg"), "tb-cache", machine.tcg_cache_mb, unit="MiB")


def _add_cpu(domain: Element, instance: Instance, machine: Machine) -> None:
    """Show the guest one socket per virtual CPU, of the model that the settings say."""
    mode = machine.cpu_mode or ("host-model" if machine.virt_type == "kvm" else "none")
    cpu = SubElement(domain, "cpu")
    if mode == "custom":
        cpu.set("mode", "custom")
        cpu.set("match", "exact")
        _text(cpu, "model", machine.cpu_model)
    elif mode != "none":
        cpu.set("mode", mode)
    SubElement(cpu, "topology", sockets=str(instance.flavor.vcpus), cores="1", threads="1")


def _add_clock(domain: Element, machine: Machine) -> None:
    clock = SubElement(domain, "clock", offset="utc")
    if machine.virt_type == "kvm" and machine.arch in _X86:
        SubElement(clock, "timer", name="pit", tickpolicy="delay")
        SubElement(clock, "timer", name="rtc", tickpolicy="catchup")
        SubElement(clock, "timer", name="hpet", present="no")


def _cdrom_bus(machine: Machine, machine_type: str) -> str:
    if machine.arch not in _X86:
        return "scsi"
    return "sata" if "q35" in machine_type else "ide"


def _add_drives(
    devices: Element, instance: Instance, machine: Machine, drives: Sequence[Drive], machine_type: str
) -> None:
    disk_bus = _property(instance, "hw_disk_bus", "virtio", _DISK_BUSES)
    cdrom_bus = _property(instance, "hw_cdrom_bus", _cdrom_bus(machine, machine_type), _DISK_BUSES[1:])
    used: dict[str, int] = {}
    buses = []
    for drive in drives:
        bus = disk_bus if drive.device == DISK else cdrom_bus
        prefix = _TARGET_PREFIX[bus]
        letter = "abcdefghijklmnopqrstuvwxyz"[used.get(prefix, 0)]
        used[prefix] = used.get(prefix, 0) + 1
        buses.append(bus)
        _add_drive(devices, machine, drive, bus, prefix + letter)
    if "scsi" in buses:
        SubElement(devices, "controller", type="scsi", index="0", model="virtio-scsi")


def _add_drive(devices: Element, machine: Machine, drive: Drive, bus: str, target: str) -> None:
    disk = SubElement(devices, "disk", type="file", device=drive.device)
    driver = SubElement(disk, "driver", name="qemu", type=drive.format)
    if drive.device == DISK:
        driver.set("cache", machine.disk_cache)
        driver.set("discard", "unmap")
    SubElement(disk, "source", file=str(drive.path))
    SubElement(disk, "target", dev=target, bus=bus)
    if drive.device != DISK:
        SubElement(disk, "readonly")


def _add_interface(devices: Element, instance: Instance, vif: Vif) -> None:
    if vif.bridge is None:
        return  # the network driver plugs it elsewhere, and the guest has no such interface yet
    interface = SubElement(devices, "interface", type="bridge")
    SubElement(interface, "mac", address=vif.mac)
    SubElement(interface, "source", bridge=vif.bridge)
    SubElement(interface, "target", dev=f"tap{vif.port}"[:_TAP_LENGTH])
    SubElement(interface, "model", type=_property(instance, "hw_vif_model", "virtio", _VIF_MODELS))
    if vif.mtu is not None:
        SubElement(interface, "mtu", size=str(vif.mtu))


def _add_console(devices: Element, console_log: Path) -> None:
    """Write the serial port to a file, across restarts of the guest."""
    serial = SubElement(devices, "serial", type="pty")
    SubElement(serial, "log", file=str(console_log), append="on")
    SubElement(serial, "target", port="0")


def _add_screen(devices: Element, machine: Machine) -> None:
    if machine.vnc_listen is None:
        return
    SubElement(devices, "graphics", type="vnc", port="-1", autoport="yes", listen=machine.vnc_listen)
    SubElement(SubElement(devices, "video"), "model", type="vga" if machine.arch in _X86 else "virtio")


def _add_small_devices(devices: Element) -> None:
    """Give entropy and a balloon; leave USB out, whose polling costs every idle guest."""
    SubElement(devices, "controller", type="usb", model="none")
    rng = SubElement(devices, "rng", model="virtio")
    _text(rng, "backend", "/dev/urandom", model="random")
    SubElement(devices, "memballoon", model="virtio")

# SPDX-License-Identifier: Apache-2.0
"""What the host has to offer, out of libvirt's description of it (https://libvirt.org/formatcaps.html)."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any

import libvirt

from nova_lite import exception
from nova_lite.virt.libvirt.connection import VirConnect


@dataclass(frozen=True, slots=True)
class HostFacts:
    """version is libvirt's number for QEMU: 7002000 is 7.2.0. arch is that of the host's own CPU."""

    hostname: str
    version: int
    vcpus: int
    memory_mb: int
    arch: str
    cpu_info: dict[str, Any]
    architectures: tuple[str, ...]


def read_facts(conn: VirConnect, virt_type: str) -> HostFacts:
    """Ask libvirt about the host; runs inside a call of the connection.

    :raises HypervisorUnavailable: guests of this virt_type cannot run here.
    """
    capabilities = ElementTree.fromstring(conn.getCapabilities())
    info = conn.getInfo()
    architectures = guest_architectures(capabilities, virt_type)
    if not architectures:
        raise exception.HypervisorUnavailable(
            reason=f"libvirt on this host offers no guests of virt_type={virt_type}. Install the emulator (and for kvm "
            "give libvirt /dev/kvm), or change [libvirt] virt_type."
        )
    return HostFacts(
        hostname=conn.getHostname(),
        version=conn.getVersion(),
        vcpus=info[2],
        # Not info[1]: that is the memory of NUMA nodes, which lacks what was plugged into a virtual machine.
        memory_mb=conn.getMemoryStats(libvirt.VIR_NODE_MEMORY_STATS_ALL_CELLS)["total"] >> 10,
        arch=capabilities.findtext("host/cpu/arch", default=info[0]),
        cpu_info=cpu_info(capabilities, info),
        architectures=architectures,
    )


def guest_architectures(capabilities: ElementTree.Element, virt_type: str) -> tuple[str, ...]:
    """Return the architectures for which there are guests of this type."""
    return tuple(
        arch.get("name", "")
        for arch in capabilities.iterfind("guest/arch")
        if any(domain.get("type") == virt_type for domain in arch.iterfind("domain"))
    )


def cpu_info(capabilities: ElementTree.Element, info: list[Any]) -> dict[str, Any]:
    """Return the CPU with the keys that the API shows; what libvirt does not know is left empty.

    :param info: virNodeGetInfo's: model, MiB, CPUs, MHz, NUMA nodes, sockets per node, cores, threads.
    """
    cpu = capabilities.find("host/cpu")
    if cpu is None:
        cpu = ElementTree.Element("cpu")
    topology = cpu.find("topology")
    found = topology.attrib if topology is not None else {}
    return {
        "arch": cpu.findtext("arch", default=info[0]),
        "model": cpu.findtext("model", default=""),
        "vendor": cpu.findtext("vendor", default=""),
        "topology": {
            "cells": info[4],
            "sockets": int(found.get("sockets", info[5])),
            "cores": int(found.get("cores", info[6])),
            "threads": int(found.get("threads", info[7])),
        },
        "features": sorted({feature.get("name", "") for feature in cpu.iterfind("feature")}),
    }

# SPDX-License-Identifier: Apache-2.0
"""What libvirt counts of a domain, and where its screen is; both of the domain as it runs now."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any

import libvirt

from nova_lite.objects.diagnostics import Diagnostics, DiskCounts, NicCounts, Screen
from nova_lite.virt.libvirt.connection import VirConnect
from nova_lite.virt.libvirt.guest import Guest

_GROUPS = (
    libvirt.VIR_DOMAIN_STATS_VCPU
    | libvirt.VIR_DOMAIN_STATS_BLOCK
    | libvirt.VIR_DOMAIN_STATS_INTERFACE
    | libvirt.VIR_DOMAIN_STATS_BALLOON
)
# Addresses that mean "all of the host's", at which nobody can be reached.
_ANYWHERE = ("", "0.0.0.0", "::")

Stats = Mapping[str, Any]


def read(conn: VirConnect, guest: Guest, virt_type: str) -> Diagnostics:
    """Ask libvirt for all it counts, in one call."""
    ((_domain, stats),) = conn.domainListGetStats([guest.domain], _GROUPS)
    return diagnostics(stats, guest.domain.XMLDesc(0), guest.power_state(), virt_type)


def diagnostics(stats: Stats, xml: str, power_state: int, virt_type: str) -> Diagnostics:
    """Make of libvirt's names (virConnectGetAllDomainStats) ours; what it does not count is 0."""
    domain = ElementTree.fromstring(xml)
    macs = {
        target.get("dev", ""): mac.get("address", "")
        for interface in domain.iterfind("devices/interface")
        if (target := interface.find("target")) is not None and (mac := interface.find("mac")) is not None
    }
    return Diagnostics(
        power_state=power_state,
        driver="libvirt",
        hypervisor=virt_type,
        cpu_times=tuple(int(stats.get(f"vcpu.{n}.time", 0)) for n in range(int(stats.get("vcpu.maximum", 0)))),
        disks=tuple(_disk(stats, f"block.{n}.") for n in range(int(stats.get("block.count", 0)))),
        nics=tuple(_nic(stats, f"net.{n}.", macs) for n in range(int(stats.get("net.count", 0)))),
        memory_maximum=int(stats.get("balloon.maximum", 0)),
        memory_used=int(stats.get("balloon.current", 0)),
    )


def _disk(stats: Stats, prefix: str) -> DiskCounts:
    return DiskCounts(
        name=str(stats.get(prefix + "name", "")),
        read_bytes=int(stats.get(prefix + "rd.bytes", 0)),
        read_requests=int(stats.get(prefix + "rd.reqs", 0)),
        write_bytes=int(stats.get(prefix + "wr.bytes", 0)),
        write_requests=int(stats.get(prefix + "wr.reqs", 0)),
        errors=int(stats.get(prefix + "errors", -1)),
    )


def _nic(stats: Stats, prefix: str, macs: Mapping[str, str]) -> NicCounts:
    name = str(stats.get(prefix + "name", ""))
    ways = {
        f"{way}_{what}": int(stats.get(f"{prefix}{way}.{key}", 0))
        for way in ("rx", "tx")
        for what, key in (("bytes", "bytes"), ("packets", "pkts"), ("errors", "errs"), ("drop", "drop"))
    }
    return NicCounts(name, macs.get(name, ""), **ways)


def screen(xml: str, host_ip: str) -> Screen | None:
    """Return where a running domain's screen is; None if it has none, or does not run.

    :param host_ip: the host's address, if the screen is served at all of them.
    """
    graphics = ElementTree.fromstring(xml).find("devices/graphics[@type='vnc']")
    if graphics is None:
        return None
    port = int(graphics.get("port", "-1"))
    listen = graphics.get("listen", "")
    return Screen(host_ip if listen in _ANYWHERE else listen, port) if port > 0 else None

# SPDX-License-Identifier: Apache-2.0
"""What a hypervisor measures of a running domain, and where the domain's screen can be reached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskCounts:
    """What a disk has done since the domain started. name is the guest's (vda); errors is -1 if nobody counts them."""

    name: str
    read_bytes: int = 0
    read_requests: int = 0
    write_bytes: int = 0
    write_requests: int = 0
    errors: int = -1


@dataclass(frozen=True, slots=True)
class NicCounts:
    """What an interface has carried, as the host sees it. name is the host's (tap...)."""

    name: str
    mac: str
    rx_bytes: int = 0
    rx_packets: int = 0
    rx_errors: int = 0
    rx_drop: int = 0
    tx_bytes: int = 0
    tx_packets: int = 0
    tx_errors: int = 0
    tx_drop: int = 0


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What a domain uses. cpu_times are nanoseconds of each virtual CPU; memory is in KiB.

    driver is nova_lite's (libvirt, fake), hypervisor what runs the domain (kvm, qemu, fake).
    """

    power_state: int
    driver: str
    hypervisor: str
    cpu_times: tuple[int, ...] = ()
    disks: tuple[DiskCounts, ...] = ()
    nics: tuple[NicCounts, ...] = ()
    memory_maximum: int = 0
    memory_used: int = 0


@dataclass(frozen=True, slots=True)
class Screen:
    """Where a domain's screen is served over VNC, for the proxy."""

    host: str
    port: int

# SPDX-License-Identifier: Apache-2.0
"""Amounts of what a host has to give, and of what a server takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of each resource: virtual CPUs, memory in MiB, disk in GiB."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0

    def __add__(self, other: Resources) -> Resources:
        return Resources(self.vcpus + other.vcpus, self.memory_mb + other.memory_mb, self.disk_gb + other.disk_gb)

    def __sub__(self, other: Resources) -> Resources:
        return Resources(self.vcpus - other.vcpus, self.memory_mb - other.memory_mb, self.disk_gb - other.disk_gb)

    def fits(self, capacity: Resources) -> bool:
        """Tell whether no part of this amount exceeds the same part of the capacity."""
        return (
            (self.vcpus <= capacity.vcpus)
            and (self.memory_mb <= capacity.memory_mb)
            and (self.disk_gb <= capacity.disk_gb)
        )

    def beyond(self, held: Resources) -> Resources:
        """Return what this amount has of each resource beyond what is held."""
        more = self - held
        return Resources(max(0, more.vcpus), max(0, more.memory_mb), max(0, more.disk_gb))

# SPDX-License-Identifier: Apache-2.0
"""A flavor, as an instance pins it at the moment that it is created or resized."""

from __future__ import annotations

from dataclasses import dataclass, field

from nova_lite.objects.resources import Resources


@dataclass(frozen=True, slots=True)
class Flavor:
    """Sizes: memory and swap in MiB, disks in GiB."""

    flavorid: str
    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    rxtx_factor: float = 1.0
    is_public: bool = True
    disabled: bool = False
    description: str | None = None
    extra_specs: dict[str, str] = field(default_factory=dict)

    @property
    def resources(self) -> Resources:
        """What a server of this flavor takes from its host; swap counts as disk, rounded up to GiB."""
        swap_gb = -(-self.swap_mb // 1024)
        return Resources(self.vcpus, self.memory_mb, self.root_gb + self.ephemeral_gb + swap_gb)

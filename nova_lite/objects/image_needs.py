# SPDX-License-Identifier: Apache-2.0
"""What an image asks of the host that it runs on, by its properties; names and values are Glance's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

_ARCHITECTURE = ("hw_architecture", "architecture")
_HYPERVISOR_TYPE = ("img_hv_type", "hypervisor_type")
_VM_MODE = ("hw_vm_mode", "vm_mode")


@dataclass(frozen=True, slots=True)
class ImageNeeds:
    """The architecture, hypervisor type and VM mode that an image names, in lower case; "" is any."""

    architecture: str = ""
    hypervisor_type: str = ""
    vm_mode: str = ""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ImageNeeds:
        return cls(*(_first(properties, names) for names in (_ARCHITECTURE, _HYPERVISOR_TYPE, _VM_MODE)))

    def __bool__(self) -> bool:
        return bool(self.architecture or self.hypervisor_type or self.vm_mode)

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.architecture, self.hypervisor_type, self.vm_mode)))

    def met_by(self, architectures: Collection[str], hypervisor_type: str, vm_modes: Collection[str]) -> bool:
        """Tell whether a host has what the image asks for; one that names no architectures has any."""
        return (
            (not self.architecture or not architectures or self.architecture in architectures)
            and (not self.hypervisor_type or self.hypervisor_type == hypervisor_type.lower())
            and (not self.vm_mode or self.vm_mode in vm_modes)
        )


def _first(properties: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((properties[name].lower() for name in names if properties.get(name)), "")

# SPDX-License-Identifier: Apache-2.0
"""An image that names an architecture, a hypervisor type or a VM mode only runs on a host that has it."""

from __future__ import annotations

import numpy as np

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View

_ARCHITECTURE = ("hw_architecture", "architecture")
_HYPERVISOR_TYPE = ("img_hv_type", "hypervisor_type")
_VM_MODE = ("hw_vm_mode", "vm_mode")


class ImagePropertiesFilter(Filter):
    def passes(self, view: View, request: Request) -> Mask | None:
        architecture = _first(request, _ARCHITECTURE)
        hypervisor = _first(request, _HYPERVISOR_TYPE)
        mode = _first(request, _VM_MODE)
        if not (architecture or hypervisor or mode):
            return None
        return np.array(
            [
                (not architecture or not host.architectures or architecture in host.architectures)
                and (not hypervisor or hypervisor == host.hypervisor_type.lower())
                and (not mode or mode in host.vm_modes)
                for host in view.hosts
            ],
            dtype=bool,
        )

    def explain(self, request: Request) -> str:
        asked = [_first(request, names) for names in (_ARCHITECTURE, _HYPERVISOR_TYPE, _VM_MODE)]
        return f"unable to run what the image asks for ({', '.join(filter(None, asked))})"


def _first(request: Request, names: tuple[str, ...]) -> str:
    for name in names:
        if request.spec.image_properties.get(name):
            return request.spec.image_properties[name].lower()
    return ""

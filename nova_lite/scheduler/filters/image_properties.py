# SPDX-License-Identifier: Apache-2.0
"""An image that names an architecture, a hypervisor type or a VM mode only runs on a host that has it."""

from __future__ import annotations

import numpy as np

from nova_lite.objects.image_needs import ImageNeeds
from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View


class ImagePropertiesFilter(Filter):
    def passes(self, view: View, request: Request) -> Mask | None:
        needs = ImageNeeds.of(request.spec.image_properties)
        if not needs:
            return None
        return np.array(
            [needs.met_by(host.architectures, host.hypervisor_type, host.vm_modes) for host in view.hosts],
            dtype=bool,
        )

    def explain(self, request: Request) -> str:
        return f"unable to run what the image asks for ({ImageNeeds.of(request.spec.image_properties)})"

# SPDX-License-Identifier: Apache-2.0
"""Flavors as the API shows them."""

from __future__ import annotations

from typing import Any

from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.views import links
from nova_lite.objects.flavor import Flavor

_DESCRIPTION = Version(2, 55)
_EXTRA_SPECS = Version(2, 61)
_SWAP_IS_A_NUMBER = Version(2, 75)
_WITHOUT_LEFTOVERS = Version(2, 102)


def summary(req: Request, flavor: Flavor) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": flavor.flavorid,
        "name": flavor.name,
        "links": links.resource(req, "flavors", flavor.flavorid),
    }
    if req.version >= _DESCRIPTION:
        shown["description"] = flavor.description
    return shown


def detail(req: Request, flavor: Flavor, with_extra_specs: bool = True) -> dict[str, Any]:
    """:param with_extra_specs: whether the caller may see them."""
    shown = {
        **summary(req, flavor),
        "ram": flavor.memory_mb,
        "disk": flavor.root_gb,
        "swap": flavor.swap_mb if flavor.swap_mb or req.version >= _SWAP_IS_A_NUMBER else "",
        "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gb,
        "vcpus": flavor.vcpus,
        "os-flavor-access:is_public": flavor.is_public,
    }
    if req.version < _WITHOUT_LEFTOVERS:
        shown |= {"OS-FLV-DISABLED:disabled": flavor.disabled, "rxtx_factor": flavor.rxtx_factor}
    if with_extra_specs and req.version >= _EXTRA_SPECS:
        shown["extra_specs"] = flavor.extra_specs
    return shown

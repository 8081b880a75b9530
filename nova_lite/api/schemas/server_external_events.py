# SPDX-License-Identifier: Apache-2.0
"""What other services may tell of servers, at each microversion."""

from __future__ import annotations

from nova_lite.api import validation as v
from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import Schema

_NAMES = ("network-changed", "network-vif-plugged", "network-vif-unplugged", "network-vif-deleted")
_251 = (*_NAMES, "volume-extended")
_276 = (*_251, "power-update")
_282 = (*_276, "accelerator-request-bound")
_293 = (*_282, "volume-reimaged")


def _events(names: tuple[str, ...]) -> Schema:
    event = v.obj(
        {
            "server_uuid": v.UUID,
            "name": {"type": "string", "enum": list(names)},
            "status": {"type": "string", "enum": ["failed", "completed", "in-progress"]},
            "tag": {"type": "string", "maxLength": 255},
        },
        ("server_uuid", "name"),
    )
    return v.obj({"events": {"type": "array", "minItems": 1, "items": event}}, ("events",))


CREATE = Versioned(
    {
        "2.1": _events(_NAMES),
        "2.51": _events(_251),
        "2.76": _events(_276),
        "2.82": _events(_282),
        "2.93": _events(_293),
    }
)

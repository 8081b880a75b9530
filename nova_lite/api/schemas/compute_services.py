# SPDX-License-Identifier: Apache-2.0
"""Request schemas of services."""

from __future__ import annotations

from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import BOOLEAN, HOSTNAME, Schema, multi, obj, query_of

_REASON: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "format": "description"}
_NAMED: Schema = {
    "host": HOSTNAME,
    "binary": {"type": "string", "minLength": 1, "maxLength": 255},
    "disabled_reason": _REASON,
}

UPDATE = Versioned(
    {
        "2.1": obj(_NAMED, ("host", "binary")),
        "2.11": obj({**_NAMED, "forced_down": BOOLEAN}, ("host", "binary")),
        "2.53": {
            **obj(
                {
                    "status": {"type": "string", "enum": ["enabled", "disabled"]},
                    "disabled_reason": _REASON,
                    "forced_down": BOOLEAN,
                }
            ),
            "minProperties": 1,
        },
    }
)

_SEARCH: Schema = {"host": multi({"type": "string"}), "binary": multi({"type": "string"})}
LIST = Versioned({"2.1": query_of(_SEARCH), "2.75": query_of(_SEARCH, strict=True)})

# SPDX-License-Identifier: Apache-2.0
"""What the bodies of actions that move a server may look like, at each microversion."""

from __future__ import annotations

from nova_lite.api import validation as v
from nova_lite.api.microversion import Versioned
from nova_lite.api.schemas.server_actions import bare
from nova_lite.api.validation import Schema

_DISK_CONFIG: Schema = {"type": "string", "enum": ["AUTO", "MANUAL"]}
_HOST: Schema = {**v.HOSTNAME, "type": ["string", "null"]}
_BOOLEAN_OR_AUTO: Schema = {**v.BOOLEAN, "enum": [*v.BOOLEAN["enum"], "auto"]}
_PASSWORD: Schema = {"type": "string", "maxLength": 255}

RESIZE = v.wrapped(
    "resize",
    {
        "flavorRef": {"type": ["string", "integer"], "minLength": 1, "maxLength": 255},
        "OS-DCF:diskConfig": _DISK_CONFIG,
    },
    ("flavorRef",),
)
CONFIRM = bare("confirmResize")
REVERT = bare("revertResize")

MIGRATE = Versioned(
    {
        "2.1": bare("migrate"),
        "2.56": v.obj({"migrate": {**v.obj({"host": _HOST}), "type": ["object", "null"]}}, ("migrate",)),
    }
)

_LIVE: Schema = {"host": _HOST, "block_migration": v.BOOLEAN, "disk_over_commit": v.BOOLEAN}
_LIVE_225: Schema = {"host": _HOST, "block_migration": _BOOLEAN_OR_AUTO}


def _live(properties: Schema, *required: str) -> Schema:
    return v.wrapped("os-migrateLive", properties, ("host", "block_migration", *required))


LIVE_MIGRATE = Versioned(
    {
        "2.1": _live(_LIVE, "disk_over_commit"),
        "2.25": _live(_LIVE_225),
        "2.30": _live({**_LIVE_225, "force": v.BOOLEAN}),
        "2.68": _live(_LIVE_225),
    }
)

_EVACUATE: Schema = {"host": v.HOSTNAME, "adminPass": _PASSWORD}

EVACUATE = Versioned(
    {
        "2.1": v.wrapped("evacuate", {**_EVACUATE, "onSharedStorage": v.BOOLEAN}, ("onSharedStorage",)),
        "2.14": v.wrapped("evacuate", _EVACUATE),
        "2.29": v.wrapped("evacuate", {**_EVACUATE, "force": v.BOOLEAN}),
        "2.68": v.wrapped("evacuate", _EVACUATE),
    }
)

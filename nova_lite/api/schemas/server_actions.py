# SPDX-License-Identifier: Apache-2.0
"""What the bodies of actions on a server may look like, at each microversion."""

from __future__ import annotations

from nova_lite.api import validation as v
from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import Schema


def bare(action: str) -> Schema:
    """An action whose value says nothing, and is whatever clients make of that."""
    return v.obj({action: {}}, (action,))


REBOOT = v.wrapped(
    "reboot", {"type": {"type": "string", "enum": ["HARD", "Hard", "hard", "SOFT", "Soft", "soft"]}}, ("type",)
)

LOCK = Versioned(
    {
        "2.1": bare("lock"),
        "2.73": v.obj(
            {
                "lock": {
                    "type": ["object", "null"],
                    "properties": {"locked_reason": {"type": "string", "minLength": 1, "maxLength": 255}},
                    "additionalProperties": False,
                }
            },
            ("lock",),
        ),
    }
)
UNLOCK = bare("unlock")

CONSOLE_OUTPUT = v.wrapped(
    "os-getConsoleOutput",
    {"length": {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]{1,10}$", "minimum": -1}},
)

RESET_STATE = v.wrapped("os-resetState", {"state": {"type": "string", "enum": ["active", "error"]}}, ("state",))

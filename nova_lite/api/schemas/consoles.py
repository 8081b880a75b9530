# SPDX-License-Identifier: Apache-2.0
"""What requests for a server's console may look like, at each microversion."""

from __future__ import annotations

from nova_lite.api import validation as v
from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import Schema

_PROTOCOLS = ("vnc", "spice", "rdp", "serial")
_TYPES = ("novnc", "xvpvnc", "spice-html5", "rdp-html5", "serial")


def _remote_console(protocols: tuple[str, ...], types: tuple[str, ...]) -> Schema:
    return v.wrapped(
        "remote_console",
        {"protocol": {"type": "string", "enum": list(protocols)}, "type": {"type": "string", "enum": list(types)}},
        ("protocol", "type"),
    )


REMOTE_CONSOLE = Versioned(
    {
        "2.6": _remote_console(_PROTOCOLS, _TYPES),
        "2.8": _remote_console((*_PROTOCOLS, "mks"), (*_TYPES, "webmks")),
        "2.99": _remote_console((*_PROTOCOLS, "mks"), (*_TYPES, "webmks", "spice-direct")),
    }
)

#: Actions that were there before, up to 2.5 -> the types that each may ask for.
OLD_ACTIONS = {
    "os-getVNCConsole": ("novnc", "xvpvnc"),
    "os-getSPICEConsole": ("spice-html5",),
    "os-getRDPConsole": ("rdp-html5",),
    "os-getSerialConsole": ("serial",),
}


def old_action(name: str) -> Versioned[Schema]:
    """Make the schema of one of the actions."""
    types = {"type": {"type": "string", "enum": list(OLD_ACTIONS[name])}}
    return Versioned({"2.1": v.wrapped(name, types, ("type",)), "2.6": None})

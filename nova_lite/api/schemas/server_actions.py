# SPDX-License-Identifier: Apache-2.0
"""What the bodies of actions on a server may look like, at each microversion."""

from __future__ import annotations

from nova_lite.api import validation as v
from nova_lite.api.microversion import Versioned
from nova_lite.api.schemas import servers
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

_REBUILD: Schema = {
    "name": v.NAME,
    "imageRef": v.UUID,
    "adminPass": {"type": "string", "maxLength": 255},
    "metadata": v.METADATA,
    "preserve_ephemeral": v.BOOLEAN,
    "OS-DCF:diskConfig": servers.DISK_CONFIG,
    "accessIPv4": servers.IPV4,
    "accessIPv6": servers.IPV6,
    "personality": servers.PERSONALITY,
}
_REBUILD_219 = {**_REBUILD, "description": v.DESCRIPTION}
_REBUILD_254 = {**_REBUILD_219, "key_name": {"oneOf": [v.NAME, {"type": "null"}]}}
_REBUILD_257 = {
    **{key: value for key, value in _REBUILD_254.items() if key != "personality"},
    "user_data": {"oneOf": [servers.USER_DATA, {"type": "null"}]},
}
_REBUILD_263 = {**_REBUILD_257, "trusted_image_certificates": servers.CERTIFICATES}

REBUILD = Versioned(
    {
        version: v.wrapped("rebuild", properties, ("imageRef",))
        for version, properties in {
            "2.1": _REBUILD,
            "2.19": _REBUILD_219,
            "2.54": _REBUILD_254,
            "2.57": _REBUILD_257,
            "2.63": _REBUILD_263,
            "2.90": {**_REBUILD_263, "hostname": servers.HOSTNAME},
            "2.94": {**_REBUILD_263, "hostname": servers.FQDN},
        }.items()
    }
)

CREATE_IMAGE = v.wrapped("createImage", {"name": v.NAME, "metadata": v.METADATA}, ("name",))
CREATE_BACKUP = v.wrapped(
    "createBackup",
    {
        "name": v.NAME,
        "backup_type": {"type": "string", "minLength": 1, "maxLength": 255},
        "rotation": v.NON_NEGATIVE_INTEGER,
        "metadata": v.METADATA,
    },
    ("name", "backup_type", "rotation"),
)

RESCUE = v.obj(
    {
        "rescue": {
            "type": ["object", "null"],
            "properties": {"adminPass": {"type": "string", "maxLength": 255}, "rescue_image_ref": v.UUID},
            "additionalProperties": False,
        }
    },
    ("rescue",),
)

SHELVE = bare("shelve")
UNSHELVE = Versioned(
    {
        "2.1": bare("unshelve"),
        "2.77": v.obj(
            {"unshelve": {"oneOf": [v.obj({"availability_zone": v.NAME}, ("availability_zone",)), {"type": "null"}]}},
            ("unshelve",),
        ),
        "2.91": v.obj(
            {
                "unshelve": {
                    "oneOf": [
                        v.obj({"availability_zone": servers.ZONE, "host": v.HOSTNAME}, minProperties=1),
                        {"type": "null"},
                    ]
                }
            },
            ("unshelve",),
        ),
    }
)

CHANGE_PASSWORD = v.wrapped("changePassword", {"adminPass": {"type": "string", "maxLength": 255}}, ("adminPass",))
TRIGGER_CRASH_DUMP = v.obj({"trigger_crash_dump": {"type": "null"}}, ("trigger_crash_dump",))

# SPDX-License-Identifier: Apache-2.0
"""Request schemas of the embedded image service. What is not an attribute of images is a property: any text."""

from __future__ import annotations

from nova_lite.api.validation import NON_NEGATIVE_INTEGER, UUID, Schema

DISK_FORMATS = ["raw", "qcow2"]
CONTAINER_FORMATS = ["bare"]
VISIBILITIES = ["public", "private", "shared", "community"]

#: What a user may set; the schema of each.
ATTRIBUTES: Schema = {
    "name": {"type": ["string", "null"], "maxLength": 255},
    "visibility": {"enum": VISIBILITIES},
    "disk_format": {"enum": [*DISK_FORMATS, None]},
    "container_format": {"enum": [*CONTAINER_FORMATS, None]},
    "min_disk": {**NON_NEGATIVE_INTEGER, "type": "integer"},
    "min_ram": {**NON_NEGATIVE_INTEGER, "type": "integer"},
    "protected": {"type": "boolean"},
    "os_hidden": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string", "maxLength": 255}, "maxItems": 128},
    "owner": {"type": ["string", "null"], "maxLength": 255},
}

#: What the service says of an image, and nobody sets.
READ_ONLY = frozenset(
    (
        *("status", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value", "created_at", "updated_at"),
        *("self", "file", "schema", "direct_url", "locations", "stores", "deleted", "deleted_at"),
    )
)

_PROPERTY: Schema = {"type": "string", "maxLength": 65535}
_NAMES: Schema = {"type": "string", "minLength": 1, "maxLength": 255}

CREATE: Schema = {
    "type": "object",
    "properties": {**ATTRIBUTES, "id": UUID, **dict.fromkeys(sorted(READ_ONLY), {})},
    "propertyNames": _NAMES,
    "additionalProperties": _PROPERTY,
    "maxProperties": 256,
}
#: An image's attributes and properties as they are after a patch.
PATCHED: Schema = {
    "type": "object",
    "properties": ATTRIBUTES,
    "propertyNames": _NAMES,
    "additionalProperties": _PROPERTY,
    "maxProperties": 256,
}
PATCH: Schema = {
    "type": "array",
    "maxItems": 256,
    "items": {
        "type": "object",
        "properties": {
            "op": {"enum": ["add", "replace", "remove"]},
            "path": {"type": "string", "pattern": "^/[^/]+$", "maxLength": 512},
            "value": {},
        },
        "required": ["op", "path"],
        "additionalProperties": False,
    },
}
LIST: Schema = {"type": "object", "additionalProperties": {"type": "array", "items": {"maxLength": 65535}}}

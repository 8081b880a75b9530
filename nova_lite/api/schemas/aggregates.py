# SPDX-License-Identifier: Apache-2.0
"""Request schemas of aggregates."""

from __future__ import annotations

from nova_lite.api.validation import HOSTNAME, METADATA_WITH_NULL, NAME, UUID, Schema, obj, wrapped

# Not with a colon: it parts zone and host where servers are created.
_ZONE: Schema = {**NAME, "pattern": "^[^:]+$"}

CREATE = wrapped("aggregate", {"name": NAME, "availability_zone": {"anyOf": [_ZONE, {"type": "null"}]}}, ("name",))
UPDATE = wrapped("aggregate", {"name": NAME, "availability_zone": _ZONE}, minProperties=1)

_HOST = obj({"host": HOSTNAME}, ("host",))
ACTION: Schema = {
    **obj(
        {
            "add_host": _HOST,
            "remove_host": _HOST,
            "set_metadata": obj({"metadata": METADATA_WITH_NULL}, ("metadata",)),
        }
    ),
    "minProperties": 1,
    "maxProperties": 1,
}
IMAGES = obj(
    {"cache": {"type": "array", "minItems": 1, "items": obj({"id": UUID}, ("id",))}},
    ("cache",),
)

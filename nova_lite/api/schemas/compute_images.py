# SPDX-License-Identifier: Apache-2.0
"""Request schemas of the images that Compute itself shows."""

from __future__ import annotations

from nova_lite.api import validation as v

#: The API's names of what images are found by -> attributes and properties of images.
ATTRIBUTES = {"name": "name", "minRam": "min_ram", "minDisk": "min_disk"}
PROPERTIES = {"server": "instance_uuid", "type": "image_type"}
#: Any other property is asked for with this before its name.
PREFIX = "property-"

LIST = v.query_of(
    {
        **dict.fromkeys((*ATTRIBUTES, *PROPERTIES, "status"), v.multi(v.QUERY_STRING)),
        "changes-since": v.multi({"type": "string", "format": "date-time", "maxLength": 64}),
        **v.PAGE,
    }
)

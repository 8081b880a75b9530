# SPDX-License-Identifier: Apache-2.0
"""Images as Glance's API v2 shows them."""

from __future__ import annotations

from typing import Any

from nova_lite.api.request import Request
from nova_lite.api.schemas import images as schemas
from nova_lite.api.views.links import utc
from nova_lite.db.images import StoredImage


def detail(image: StoredImage) -> dict[str, Any]:
    path = f"/v2/images/{image.uuid}"
    return {
        **image.properties,
        "id": image.uuid,
        "name": image.name,
        "status": image.status,
        "visibility": image.visibility,
        "owner": image.owner,
        "disk_format": image.disk_format,
        "container_format": image.container_format,
        "size": image.size,
        "virtual_size": image.virtual_size,
        "checksum": image.checksum,
        "os_hash_algo": "sha512" if image.hash_value else None,
        "os_hash_value": image.hash_value,
        "min_disk": image.min_disk,
        "min_ram": image.min_ram,
        "protected": image.protected,
        "os_hidden": image.hidden,
        "tags": list(image.tags),
        "created_at": utc(image.created_at),
        "updated_at": utc(image.updated_at),
        "self": path,
        "file": f"{path}/file",
        "schema": "/v2/schemas/image",
    }


def versions(req: Request) -> dict[str, Any]:
    links = [{"rel": "self", "href": f"{req.public_url}/image/v2/"}]
    numbers = [("v2.9", "CURRENT"), *((f"v2.{minor}", "SUPPORTED") for minor in (7, 6, 5, 4, 3, 2, 1, 0))]
    return {"versions": [{"id": number, "status": status, "links": links} for number, status in numbers]}


def schema(name: str) -> dict[str, Any]:
    """Return a small JSON schema of images, for clients that look which attributes there are."""
    image = {
        "name": "image",
        "properties": {
            **{key: {**value} for key, value in schemas.ATTRIBUTES.items()},
            **{key: {"readOnly": True} for key in ("id", *sorted(schemas.READ_ONLY))},
        },
        "additionalProperties": {"type": "string"},
    }
    if name == "image":
        return image
    links = {key: {"type": "string"} for key in ("first", "next", "schema")}
    return {"name": "images", "properties": {"images": {"type": "array", "items": image}, **links}}

# SPDX-License-Identifier: Apache-2.0
"""Images as Compute shows them."""

from __future__ import annotations

from typing import Any

from nova_lite.api.request import Request
from nova_lite.api.validation import boolean
from nova_lite.api.views import links
from nova_lite.objects.image import CatalogueEntry

# The image service's statuses -> Compute's, and how far an image has come, in hundredths.
_STATUSES = {
    "active": ("ACTIVE", 100),
    "queued": ("SAVING", 25),
    "saving": ("SAVING", 50),
    "killed": ("ERROR", 0),
    "deleted": ("DELETED", 0),
    "pending_delete": ("DELETED", 0),
}
_UNKNOWN = ("UNKNOWN", 0)


def statuses(shown: str) -> tuple[str, ...]:
    """Return the image service's statuses that are shown as this one; any other is the image service's own word."""
    found = tuple(status for status, (name, _) in _STATUSES.items() if name == shown.upper())
    return found or (shown.lower(),)


def summary(req: Request, entry: CatalogueEntry, location: str) -> dict[str, Any]:
    """Show an image by id, name and links.

    :param location: its address in the image service.
    """
    image = entry.image
    alternate = {"rel": "alternate", "type": "application/vnd.openstack.image", "href": location}
    return {"id": image.id, "name": image.name, "links": [*links.resource(req, "images", image.id), alternate]}


def detail(req: Request, entry: CatalogueEntry, location: str) -> dict[str, Any]:
    image = entry.image
    status, progress = _STATUSES.get(image.status, _UNKNOWN)
    view = {
        **summary(req, entry, location),
        "status": status,
        "progress": progress,
        "minDisk": image.min_disk,
        "minRam": image.min_ram,
        "metadata": image.properties,
        "created": entry.created_at,
        "updated": entry.updated_at,
        "OS-EXT-IMG-SIZE:size": image.size,
    }
    server = image.properties.get("instance_uuid")
    if server:
        view["server"] = {"id": server, "links": links.resource(req, "servers", server)}
    if "auto_disk_config" in image.properties:
        view["OS-DCF:diskConfig"] = "AUTO" if boolean(image.properties["auto_disk_config"]) else "MANUAL"
    return view

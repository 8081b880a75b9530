# SPDX-License-Identifier: Apache-2.0
"""Looking images up on behalf of a user, wherever they are: in the api's own database, or in Glance."""

from __future__ import annotations

from typing import Any

from oslo_utils import timeutils

from nova_lite import exception
from nova_lite.api.services import Services
from nova_lite.api.views import links
from nova_lite.context import RequestContext
from nova_lite.db import images
from nova_lite.db.images import StoredImage
from nova_lite.objects.image import CatalogueEntry, CatalogueSearch, Image


def show_image(services: Services, context: RequestContext, image_id: str) -> Image:
    """Return an image that the user may see, in whatever status it is; the errors are entry's."""
    return entry(services, context, image_id).image


def entry(services: Services, context: RequestContext, image_id: str) -> CatalogueEntry:
    """Return an image that the user may see, in whatever status it is, as a list shows it.

    :raises ImageNotFound: there is none.
    :raises ImageServiceUnavailable: Glance did not answer.
    """
    catalogue = services.image_catalogue
    if catalogue is not None:
        return catalogue.entry(context.auth_token, image_id)
    seen_by = None if context.is_admin else context.project_id
    return _to_entry(services.db.read(lambda conn: images.get(conn, image_id, seen_by)))


def search(services: Services, context: RequestContext, wanted: CatalogueSearch) -> list[CatalogueEntry]:
    """List images that the user may see.

    :raises BadRequest: the marker is no image.
    :raises ImageServiceUnavailable: Glance did not answer.
    """
    if services.image_catalogue is not None:
        return services.image_catalogue.search(context.auth_token, wanted)
    equal: dict[str, tuple[Any, ...]] = {name: (_typed(name, value),) for name, value in wanted.attributes.items()}
    if wanted.statuses:
        equal["status"] = wanted.statuses
    rows = images.Search(
        project_id=None if context.is_admin else context.project_id,
        equal=equal,
        properties=wanted.properties,
        changed_since=timeutils.parse_isotime(wanted.changed_since).replace(tzinfo=None)
        if wanted.changed_since
        else None,
        marker=wanted.marker,
        limit=wanted.limit,
    )
    return [_to_entry(row) for row in services.db.read(lambda conn: images.search(conn, rows))]


def _typed(name: str, value: str) -> Any:
    if name not in ("min_disk", "min_ram"):
        return value
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise exception.BadRequest(f"{name} is a number.")
    return int(value)


def _to_entry(stored: StoredImage) -> CatalogueEntry:
    return CatalogueEntry(to_image(stored), links.utc(stored.created_at) or "", links.utc(stored.updated_at) or "")


def to_image(stored: StoredImage) -> Image:
    """Make of an image's row what the rest of nova_lite knows of images."""
    return Image(
        id=stored.uuid,
        name=stored.name,
        status=stored.status,
        disk_format=stored.disk_format,
        container_format=stored.container_format,
        size=stored.size,
        min_disk=stored.min_disk,
        min_ram=stored.min_ram,
        owner=stored.owner,
        visibility=stored.visibility,
        checksum=stored.checksum,
        properties=stored.properties,
    )

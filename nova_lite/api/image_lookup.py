# SPDX-License-Identifier: Apache-2.0
"""Looking an image up on behalf of a user, wherever images are: in the api's own database, or in Glance."""

from __future__ import annotations

from nova_lite.api.services import Services
from nova_lite.context import RequestContext
from nova_lite.db import images
from nova_lite.db.images import StoredImage
from nova_lite.objects.image import Image


def show_image(services: Services, context: RequestContext, image_id: str) -> Image:
    """Return an image that the user may see, in whatever status it is.

    :raises ImageNotFound: there is none.
    :raises ImageServiceUnavailable: Glance did not answer.
    """
    catalogue = services.image_catalogue
    if catalogue is not None:
        return catalogue.show(context.auth_token, image_id)
    seen_by = None if context.is_admin else context.project_id
    return to_image(services.db.read(lambda conn: images.get(conn, image_id, seen_by)))


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

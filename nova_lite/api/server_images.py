# SPDX-License-Identifier: Apache-2.0
"""Making images of a server: createImage and createBackup.

The image is made first, without content, so that the answer can name it: as a row together with the operation, or in
Glance with the user's own token.
"""

from __future__ import annotations

import uuid
from typing import Any

import falcon
import sqlalchemy as sa
from oslo_log import log

from nova_lite import exception
from nova_lite.api import server_lookup
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.schemas import server_actions as schemas
from nova_lite.api.services import Services
from nova_lite.db import instances, operations, quotas, snapshots
from nova_lite.db.instances import Instance
from nova_lite.objects import instance as states

LOG = log.getLogger(__name__)

_ID_IN_BODY = Version(2, 45)
# Properties of an image that say something of that very file, or of who may see it.
_NOT_INHERITED = frozenset(
    (
        *("cache_in_nova", "bittorrent", "img_signature", "img_signature_hash_method", "img_signature_key_type"),
        *("img_signature_certificate_uuid", "image_type", "backup_type", "instance_uuid", "user_id", "base_image_ref"),
    )
)


class ServerImages:
    """The actions createImage and createBackup."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.actions = {
            "createImage": (schemas.CREATE_IMAGE, self._create_image),
            "createBackup": (schemas.CREATE_BACKUP, self._create_backup),
        }

    def _create_image(self, req: Request, resp: falcon.Response, server_id: str, value: dict[str, Any]) -> None:
        row = server_lookup.find(self._services, req, server_id, "servers:create_image")
        self._check_metadata(req, value)
        image = describe(req, row, value["name"], "snapshot", value.get("metadata", {}))
        self._begin(req, resp, row, operations.CREATE_IMAGE, states.IMAGE_SNAPSHOT, image, {})

    def _create_backup(self, req: Request, resp: falcon.Response, server_id: str, value: dict[str, Any]) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-create-backup")
        self._check_metadata(req, value)
        own = {"backup_type": value["backup_type"], "instance_uuid": row.uuid, "image_type": "backup"}
        image = describe(req, row, value["name"], "backup", {**value.get("metadata", {}), **own})
        backup = {"properties": own, "rotation": int(value["rotation"])}
        self._begin(req, resp, row, operations.CREATE_BACKUP, states.IMAGE_BACKUP, image, {"backup": backup})

    def _check_metadata(self, req: Request, value: dict[str, Any]) -> None:
        """:raises QuotaExceeded: there is more than a server may have."""
        services, count = self._services, len(value.get("metadata", ()))
        limits = services.db.read(lambda conn: quotas.limits(conn, services.conf, req.nova.project_id or ""))
        quotas.check_count("metadata_items", 0, limits["metadata_items"], count)

    def _begin(
        self,
        req: Request,
        resp: falcon.Response,
        row: Instance,
        kind: str,
        task_state: str,
        image: dict[str, Any],
        arguments: dict[str, Any],
    ) -> None:
        services, caller = self._services, server_lookup.caller(req)
        # Looked at before as well, lest Glance gets an image for nothing.
        instances.check_state(row, kind, instances.AT_REST)
        services.db.read(lambda conn: server_lookup.server_of(conn, services, row))
        image_id, stored = make_image(services, req, image)

        def unit(conn: sa.Connection) -> str:
            return snapshots.begin(
                conn,
                row.uuid,
                caller,
                kind=kind,
                task_state=task_state,
                image_id=image_id,
                image=stored,
                arguments=arguments,
            )

        try:
            operation = services.db.write(unit)
        except exception.NovaLiteError:
            give_up_image(services, req, image_id)
            raise
        server_lookup.hint(services, req, [operation])
        if req.version >= _ID_IN_BODY:
            resp.media = {"image_id": image_id}
        else:
            resp.set_header("Location", location(services, req, image_id))


def describe(req: Request, row: Instance, name: str, image_type: str, metadata: dict[str, str]) -> dict[str, Any]:
    """Return the columns of an image that is made of a server: what it needs, and what it comes from."""
    base = instances.image_of(row)
    inherited = {key: text for key, text in (base.properties if base else {}).items() if key not in _NOT_INHERITED}
    origin = {"image_type": image_type, "instance_uuid": row.uuid, "user_id": req.nova.user_id or ""}
    if row.image_ref:
        origin["base_image_ref"] = row.image_ref
    return {
        "name": name,
        "disk_format": "qcow2",
        "container_format": "bare",
        "visibility": "private",
        "min_disk": max(base.min_disk if base else 0, instances.flavor_of(row).root_gb),
        "min_ram": base.min_ram if base else 0,
        "properties": {**inherited, **origin, **metadata},
    }


def make_image(services: Services, req: Request, image: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return the id of the image, and the columns of its row; in Glance it is made now, and has no row.

    :raises ImageServiceUnavailable: Glance did not answer.
    """
    if services.image_catalogue is None:
        return str(uuid.uuid4()), image
    return services.image_catalogue.create(req.nova.auth_token, image), None


def give_up_image(services: Services, req: Request, image_id: str) -> None:
    """Remove an image from Glance that nothing will fill; only a pity if it fails."""
    if services.image_catalogue is None:
        return
    try:
        services.image_catalogue.delete(image_id)
    except exception.NovaLiteError as error:
        LOG.warning("image left behind image=%s reason=%s", image_id, error)


def location(services: Services, req: Request, image_id: str) -> str:
    """Return the image's address."""
    if services.image_catalogue is None:
        return f"{req.public_url}/image/v2/images/{image_id}"
    return services.image_catalogue.location(image_id)

# SPDX-License-Identifier: Apache-2.0
"""Rebuilding a server: everything that can be refused is refused here, and the rest is put on the books."""

from __future__ import annotations

import json
from typing import Any

import falcon
import sqlalchemy as sa

from nova_lite import exception
from nova_lite.api import personality, server_creation, server_fields, server_lookup
from nova_lite.api.request import Request
from nova_lite.api.schemas import server_actions as schemas
from nova_lite.api.services import Services
from nova_lite.api.validation import boolean
from nova_lite.api.views import servers as views
from nova_lite.db import instances, quotas, rebuilds
from nova_lite.db.instances import Instance


class ServerRebuild:
    """The action rebuild."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.actions = {"rebuild": (schemas.REBUILD, self._rebuild)}

    def _rebuild(self, req: Request, resp: falcon.Response, server_id: str, value: dict[str, Any]) -> None:
        services = self._services
        row = server_lookup.find(services, req, server_id, "servers:rebuild")
        _refuse_other_services(value)
        image = server_creation.find_image(services, req, value["imageRef"], "Cannot find image for rebuild")
        server_creation.check_sizes(req, instances.flavor_of(row), image)
        caller = server_lookup.caller(req)

        def unit(conn: sa.Connection) -> tuple[str, Instance, views.Facts]:
            changes = self._changes(conn, req, row, value)
            operation = rebuilds.begin(conn, row.uuid, caller, image, changes)
            server_lookup.server_of(conn, services, row)
            changed = instances.get(conn, row.uuid)
            return operation, changed, server_lookup.read_facts(conn, services, req, [changed])

        operation, changed, facts = services.db.write(unit)
        server_lookup.hint(services, req, [operation])
        shown = views.rebuilt(req, changed, facts, server_creation.password(value))
        resp.media = {"server": shown}
        resp.set_header("Location", shown["links"][0]["href"])

    def _changes(self, conn: sa.Connection, req: Request, row: Instance, value: dict[str, Any]) -> dict[str, Any]:
        """Return the columns that the body changes.

        :raises BadRequest: the user has no such key pair.
        :raises QuotaExceeded: there are more metadata items or files than a server may have.
        """
        changes = server_fields.columns(value)
        limits = quotas.limits(conn, self._services.conf, row.project_id, row.user_id)
        # The old guest's files go with it.
        files = personality.files(value, limits)
        changes["injected_files"] = json.dumps(files) if files else None
        if "metadata" in value:
            quotas.check_count("metadata_items", 0, limits["metadata_items"], len(value["metadata"]))
            changes["metadata"] = json.dumps(value["metadata"])
        if "key_name" in value:
            changes["key_name"] = value["key_name"]
            changes["key_data"] = server_creation.public_key(conn, req, value["key_name"])
        return changes


def _refuse_other_services(value: dict[str, Any]) -> None:
    if value.get("trusted_image_certificates"):
        raise exception.BadRequest("This cloud does not check image signatures: leave out trusted_image_certificates.")
    if boolean(value.get("preserve_ephemeral", False)):
        raise exception.BadRequest("Ephemeral disks are made anew in a rebuild: preserve_ephemeral cannot be true.")

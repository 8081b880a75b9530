# SPDX-License-Identifier: Apache-2.0
"""The actions forceDelete and restore, which Nova has for servers that are deleted in two steps.

Here servers are deleted in one, whatever their state: forceDelete is a delete like any other, and no server is ever in
the state from which it could be restored.
"""

from __future__ import annotations

from typing import Any

import falcon

from nova_lite.api import server_lookup, server_shelving
from nova_lite.api.request import Request
from nova_lite.api.schemas import server_actions as schemas
from nova_lite.api.services import Services
from nova_lite.db import instances

_SOFT_DELETED = "soft-delete"


class ServerDeferredDelete:
    """The actions forceDelete and restore."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.actions = {
            "forceDelete": (schemas.bare("forceDelete"), self._force_delete),
            "restore": (schemas.bare("restore"), self._restore),
        }

    def _force_delete(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-deferred-delete:force")
        caller = server_lookup.caller(req)
        operation = self._services.db.write(lambda conn: instances.begin_delete(conn, row.uuid, caller))
        server_shelving.remove_image(self._services, row)
        server_lookup.hint(self._services, req, [operation])

    def _restore(self, req: Request, resp: falcon.Response, server_id: str, value: Any) -> None:
        row = server_lookup.find(self._services, req, server_id, "os-deferred-delete:restore")
        instances.check_state(row, "restore", (_SOFT_DELETED,))

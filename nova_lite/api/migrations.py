# SPDX-License-Identifier: Apache-2.0
"""Moves of servers as administrators see them: the list of all, and a server's live migration, which can be ended."""

from __future__ import annotations

import falcon
import sqlalchemy as sa

from nova_lite import exception, policy
from nova_lite.api import paging, server_lookup
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request, since, takes
from nova_lite.api.schemas import migrations as schemas
from nova_lite.api.server_lookup import API
from nova_lite.api.services import Services
from nova_lite.api.validation import boolean
from nova_lite.api.views import migrations as views
from nova_lite.db import move_search, moves
from nova_lite.db.move_search import Filters
from nova_lite.db.moves import Migration
from nova_lite.objects import move as wishes

_PAGED = Version(2, 59)
_ABORT_EARLY = Version(2, 65)

# Filters of the list -> columns.
_EQUAL = {
    "instance_uuid": "instance_uuid",
    "migration_type": "type",
    "project_id": "project_id",
    "source_compute": "source_compute",
    "status": "status",
    "user_id": "user_id",
}
_OWNERS = ("project_id", "user_id")


class Migrations:
    """/os-migrations"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List moves of all kinds: below 2.59 all of them, the oldest first, and by pages from then on."""
        policy.authorize(req.nova, API + "os-migrations:index")
        query = req.query()
        page = paging.page(query if req.version >= _PAGED else {}, self._services.conf.api.max_limit)
        filters = _filters(req, query)

        def unit(conn: sa.Connection) -> tuple[list[Migration], dict[str, tuple[int | None, int | None]]]:
            if _are_hidden(query):
                rows = []
            elif req.version >= _PAGED:
                rows = move_search.page(conn, filters, page.limit, page.marker)
            else:
                rows = move_search.every(conn, filters)
            return rows, move_search.flavor_ids(conn, rows)

        rows, flavor_ids = self._services.db.read(unit)
        resp.media = {"migrations": [views.listed(req, row, flavor_ids[row.uuid]) for row in rows]}
        if req.version >= _PAGED and rows:
            resp.media |= paging.next_links(req, "os-migrations", rows, page, rows[-1].uuid)


def _filters(req: Request, query: dict[str, list[str]]) -> Filters:
    changes_since, changes_before = paging.period(query) if req.version >= _PAGED else (None, None)
    # Below 2.59 the schema lets anything pass.
    names = [name for name in _EQUAL if name in query and (req.version >= views.OWNER or name not in _OWNERS)]
    return Filters(
        equal={_EQUAL[name]: query[name][-1] for name in names},
        host=query.get("host", [None])[-1],
        changes_since=changes_since,
        changes_before=changes_before,
    )


def _are_hidden(query: dict[str, list[str]]) -> bool:
    """Tell whether only hidden moves are asked for; nothing is hidden here."""
    return boolean(query.get("hidden", ["0"])[-1])


class ServerMigrations:
    """/servers/{server_id}/migrations"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @since("2.23")
    def on_get(self, req: Request, resp: falcon.Response, server_id: str) -> None:
        """List the server's live migration, if one is under way."""
        row = server_lookup.find(self._services, req, server_id, "servers:migrations:index")
        found = self._services.db.read(lambda conn: move_search.live_of(conn, row.uuid))
        resp.media = {"migrations": [views.live(req, migration) for migration in found]}


class ServerMigration:
    """/servers/{server_id}/migrations/{migration_id}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @since("2.23")
    def on_get(self, req: Request, resp: falcon.Response, server_id: str, migration_id: str) -> None:
        """Show the server's live migration while it is under way."""
        row = server_lookup.find(self._services, req, server_id, "servers:migrations:show")
        number = _number(migration_id)
        found = self._services.db.read(lambda conn: move_search.get(conn, row.uuid, number))
        if found.type != moves.LIVE:
            raise exception.NotFound(f"Migration {number} for server {row.uuid} is not live-migration.")
        if not views.is_live(found):
            raise exception.NotFound(f"Live migration {number} for server {row.uuid} is not in progress.")
        resp.media = {"migration": views.live(req, found)}

    @since("2.24")
    def on_delete(self, req: Request, resp: falcon.Response, server_id: str, migration_id: str) -> None:
        """Abort the server's live migration: the one that runs, and from 2.65 on the one that is about to."""
        row = server_lookup.find(self._services, req, server_id, "servers:migrations:delete")
        number, caller = _number(migration_id), server_lookup.caller(req)

        def unit(conn: sa.Connection) -> None:
            moves.wish(conn, row.uuid, number, wishes.ABORT, caller)
            status = move_search.get(conn, row.uuid, number).status
            if req.version < _ABORT_EARLY and status != "running":
                raise exception.BadRequest(
                    f"Migration {number} of instance {row.uuid} is {status}: before it runs it can only be aborted "
                    f"from microversion {_ABORT_EARLY} on."
                )

        self._services.db.write(unit)
        resp.status = falcon.HTTP_202


class ServerMigrationAction:
    """/servers/{server_id}/migrations/{migration_id}/action"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @since("2.22")
    @takes(body=schemas.FORCE_COMPLETE)
    def on_post(self, req: Request, resp: falcon.Response, server_id: str, migration_id: str) -> None:
        """Let the live migration that runs come to its end, whatever that costs the server: force_complete."""
        req.json_body()
        row = server_lookup.find(self._services, req, server_id, "servers:migrations:force_complete")
        number, caller = _number(migration_id), server_lookup.caller(req)
        self._services.db.write(lambda conn: moves.wish(conn, row.uuid, number, wishes.FORCE_COMPLETE, caller))
        resp.status = falcon.HTTP_202


def _number(text: str) -> int:
    """Read a migration's id.

    :raises MigrationNotFound: it is no number, so that no migration has it.
    """
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise exception.MigrationNotFound(migration=text[:64])
    return int(text)


ROUTES: list[tuple[str, type]] = [
    ("/os-migrations", Migrations),
    ("/servers/{server_id}/migrations", ServerMigrations),
    ("/servers/{server_id}/migrations/{migration_id}", ServerMigration),
    ("/servers/{server_id}/migrations/{migration_id}/action", ServerMigrationAction),
]

# SPDX-License-Identifier: Apache-2.0
"""/os-keypairs: the public keys that users put into their servers."""

from __future__ import annotations

import falcon

from nova_lite import policy
from nova_lite.api import key_material, paging
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import keypairs as schemas
from nova_lite.api.services import Services
from nova_lite.api.views import keypairs as views
from nova_lite.db import key_pairs

_API = "os_compute_api:os-keypairs:"
_TYPE = Version(2, 2)
_OTHER_USERS = Version(2, 10)
_PAGES = Version(2, 35)


def _user(req: Request, action: str, asked: str | None) -> str:
    """Return whose key pairs are meant; other people's are the administrator's business."""
    user_id = asked if asked is not None and req.version >= _OTHER_USERS else req.user_id
    policy.authorize(req.nova, _API + action, {"user_id": user_id, "project_id": req.nova.project_id})
    return user_id


class KeyPairs:
    """/os-keypairs"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        query = req.query()
        user_id = _user(req, "index", query.get("user_id", [None])[0])
        page = paging.page(query if req.version >= _PAGES else {}, self._services.conf.api.max_limit)
        limit = page.limit if req.version >= _PAGES else None
        found = self._services.db.read(lambda conn: key_pairs.of_user(conn, user_id, limit, page.marker))
        resp.media = {"keypairs": [{"keypair": views.listed(req, pair)} for pair in found]}
        if req.version >= _PAGES and found:
            resp.media |= paging.next_links(req, "os-keypairs", found, page, found[-1].name)

    @takes(body=schemas.CREATE)
    def on_post(self, req: Request, resp: falcon.Response) -> None:
        body = req.json_body()["keypair"]
        user_id = _user(req, "create", body.get("user_id"))
        kind = body.get("type", key_material.SSH)
        public_key, private_key = body.get("public_key"), None
        if public_key is None:
            made = key_material.generate(kind, user_id)
            public_key, fingerprint, private_key = made.public_key, made.fingerprint, made.private_key
        else:
            fingerprint = key_material.fingerprint(kind, public_key)
        pair = self._services.db.write(
            lambda conn: key_pairs.create(
                conn,
                self._services.conf,
                req.project_id,
                user_id=user_id,
                name=body["name"],
                key_type=kind,
                fingerprint=fingerprint,
                public_key=public_key,
            )
        )
        resp.status = falcon.HTTP_201 if req.version >= _TYPE else falcon.HTTP_200
        resp.media = {"keypair": views.created(req, pair, private_key)}


class KeyPairResource:
    """/os-keypairs/{name}"""

    def __init__(self, services: Services) -> None:
        self._services = services

    @takes(query=schemas.ONE)
    def on_get(self, req: Request, resp: falcon.Response, name: str) -> None:
        user_id = _user(req, "show", req.query().get("user_id", [None])[0])
        pair = self._services.db.read(lambda conn: key_pairs.get(conn, user_id, name))
        resp.media = {"keypair": views.detail(req, pair)}

    @takes(query=schemas.ONE)
    def on_delete(self, req: Request, resp: falcon.Response, name: str) -> None:
        user_id = _user(req, "delete", req.query().get("user_id", [None])[0])
        self._services.db.write(lambda conn: key_pairs.delete(conn, user_id, name))
        resp.status = falcon.HTTP_204 if req.version >= _TYPE else falcon.HTTP_202


ROUTES: list[tuple[str, type]] = [
    ("/os-keypairs", KeyPairs),
    ("/os-keypairs/{name}", KeyPairResource),
]

# SPDX-License-Identifier: Apache-2.0
"""Key pairs as the API shows them."""

from __future__ import annotations

from typing import Any

from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.views import links
from nova_lite.db.key_pairs import KeyPair

_TYPE = Version(2, 2)


def listed(req: Request, pair: KeyPair) -> dict[str, Any]:
    shown = {"name": pair.name, "public_key": pair.public_key, "fingerprint": pair.fingerprint}
    if req.version >= _TYPE:
        shown["type"] = pair.type
    return shown


def created(req: Request, pair: KeyPair, private_key: str | None) -> dict[str, Any]:
    shown = {**listed(req, pair), "user_id": pair.user_id}
    if private_key is not None:
        shown["private_key"] = private_key
    return shown


def detail(req: Request, pair: KeyPair) -> dict[str, Any]:
    return {
        **listed(req, pair),
        "user_id": pair.user_id,
        "id": pair.id,
        "created_at": links.precise(pair.created_at),
        "updated_at": None,
        "deleted": False,
        "deleted_at": None,
    }

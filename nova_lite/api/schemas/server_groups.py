# SPDX-License-Identifier: Apache-2.0
"""Request schemas of server groups."""

from __future__ import annotations

from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import (
    NAME,
    POSITIVE_INTEGER,
    QUERY_INTEGER,
    Schema,
    multi,
    obj,
    query_of,
    wrapped,
)

_HARD = ["anti-affinity", "affinity"]
_ALL = [*_HARD, "soft-anti-affinity", "soft-affinity"]


def _policies(names: list[str]) -> Schema:
    return {"type": "array", "items": {"type": "string", "enum": names}, "minItems": 1, "maxItems": 1}


_CREATE_264: Schema = {
    "name": NAME,
    "policy": {"type": "string", "enum": _ALL},
    "rules": obj({"max_server_per_host": POSITIVE_INTEGER}),
}

CREATE = Versioned(
    {
        "2.1": wrapped("server_group", {"name": NAME, "policies": _policies(_HARD)}, ("name", "policies")),
        "2.15": wrapped("server_group", {"name": NAME, "policies": _policies(_ALL)}, ("name", "policies")),
        "2.64": wrapped("server_group", _CREATE_264, ("name", "policy")),
    }
)

_SEARCH: Schema = {
    "all_projects": multi({"type": "string"}),
    "limit": multi(QUERY_INTEGER),
    "offset": multi(QUERY_INTEGER),
}
LIST = Versioned({"2.1": query_of(_SEARCH), "2.75": query_of(_SEARCH, strict=True)})

# SPDX-License-Identifier: Apache-2.0
"""Request schemas of key pairs."""

from __future__ import annotations

from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import NAME, NO_QUERY, PAGE, Schema, multi, query_of, wrapped

_NAME: Schema = {**NAME, "pattern": r"^[a-zA-Z0-9 _\-]+$"}
_NAME_292: Schema = {**NAME, "pattern": r"^[a-zA-Z0-9 _\-@.]+$"}
_KEY: Schema = {"type": "string", "minLength": 1, "maxLength": 65535}
_TYPE: Schema = {"type": "string", "enum": ["ssh", "x509"]}
_USER: Schema = {"type": "string", "minLength": 1, "maxLength": 255}

_CREATE: Schema = {"name": _NAME, "public_key": _KEY}
_CREATE_22: Schema = {**_CREATE, "type": _TYPE}
_CREATE_210: Schema = {**_CREATE_22, "user_id": _USER}

CREATE = Versioned(
    {
        "2.1": wrapped("keypair", _CREATE, ("name",)),
        "2.2": wrapped("keypair", _CREATE_22, ("name",)),
        "2.10": wrapped("keypair", _CREATE_210, ("name",)),
        "2.92": wrapped("keypair", {**_CREATE_210, "name": _NAME_292}, ("name", "public_key")),
    }
)

_OF_USER: Schema = {"user_id": multi({"type": "string"})}

LIST = Versioned(
    {
        "2.1": NO_QUERY,
        "2.10": query_of(_OF_USER),
        "2.35": query_of({**_OF_USER, **PAGE}),
        "2.75": query_of({**_OF_USER, **PAGE}, strict=True),
    }
)
ONE = Versioned({"2.1": NO_QUERY, "2.10": query_of(_OF_USER), "2.75": query_of(_OF_USER, strict=True)})

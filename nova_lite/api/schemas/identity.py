# SPDX-License-Identifier: Apache-2.0
"""Request schemas of the embedded identity service; as in Keystone, members that are not known are ignored."""

from __future__ import annotations

from nova_lite.api.validation import Schema

_TEXT: Schema = {"type": "string", "maxLength": 255}
_DOMAIN: Schema = {"type": "object", "properties": {"id": _TEXT, "name": _TEXT}}
_USER: Schema = {
    "type": "object",
    "properties": {"id": _TEXT, "name": _TEXT, "domain": _DOMAIN, "password": {"type": "string", "maxLength": 4096}},
    "required": ["password"],
    "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
}
_PROJECT: Schema = {
    "type": "object",
    "properties": {"id": _TEXT, "name": _TEXT, "domain": _DOMAIN},
    "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
}

LOGIN: Schema = {
    "type": "object",
    "properties": {
        "auth": {
            "type": "object",
            "properties": {
                "identity": {
                    "type": "object",
                    "properties": {
                        "methods": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 4},
                        "password": {"type": "object", "properties": {"user": _USER}, "required": ["user"]},
                        "token": {
                            "type": "object",
                            "properties": {"id": {"type": "string", "maxLength": 8192}},
                            "required": ["id"],
                        },
                    },
                    "required": ["methods"],
                },
                "scope": {"type": ["object", "string", "null"], "properties": {"project": _PROJECT}},
            },
            "required": ["identity"],
        }
    },
    "required": ["auth"],
}

# SPDX-License-Identifier: Apache-2.0
"""Request schemas: the types that the nouns' schemas are made of, the compiled validators, and error sentences.

A schema is a JSON schema as a dict, or a ``Versioned`` one. It is compiled on first use and kept: schemas are module
constants, and compiling one costs more than validating with it.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
import uuid
from typing import Any

import jsonschema
import jsonschema.validators
from oslo_utils import timeutils

from nova_lite import exception
from nova_lite.api.microversion import Version, Versioned

Schema = dict[str, Any]

# An INTEGER of the database, the largest number that Nova takes.
MAX_INT = 0x7FFFFFFF
# What of a refused value is repeated to its sender.
_SHOWN = 200


def is_uuid(text: str) -> bool:
    """Tell whether the text is a uuid in its canonical form."""
    return re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) is not None


def is_uuid_like(text: str) -> bool:
    """Tell whether the text is a uuid in any usual spelling, such as Keystone's ids without dashes."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def boolean(value: bool | str | int) -> bool:
    """Return what a value that passed the BOOLEAN schema means."""
    return str(value).strip().lower() in ("true", "1", "t", "on", "yes", "y")


# --- types -----------------------------------------------------------------------------------------------------------

BOOLEAN: Schema = {
    "type": ["boolean", "string"],
    "enum": [
        True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", "y", "t",
        False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no", "n", "f",
    ],
}  # fmt: skip
UUID: Schema = {"type": "string", "format": "uuid"}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "format": "name"}
#: The name of a service's host, a cell of the DNS.
HOSTNAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[a-zA-Z0-9-._]*$"}
DESCRIPTION: Schema = {"type": ["string", "null"], "minLength": 0, "maxLength": 255, "format": "description"}
NON_NEGATIVE_INTEGER: Schema = {
    "type": ["integer", "string"], "pattern": "^[0-9]{1,10}$", "minimum": 0, "maximum": MAX_INT,
    "minLength": 1, "format": "bounded_integer",
}  # fmt: skip
POSITIVE_INTEGER: Schema = {**NON_NEGATIVE_INTEGER, "minimum": 1, "pattern": "^0*[1-9][0-9]{0,9}$"}
METADATA: Schema = {
    "type": "object",
    "patternProperties": {r"^[a-zA-Z0-9\-_:. ]{1,255}$": {"type": "string", "maxLength": 255}},
    "additionalProperties": False,
}
METADATA_WITH_NULL: Schema = {
    "type": "object",
    "patternProperties": {r"^[a-zA-Z0-9\-_:. ]{1,255}$": {"type": ["string", "null"], "maxLength": 255}},
    "additionalProperties": False,
}
QUERY_STRING: Schema = {"type": "string", "maxLength": 255}
QUERY_INTEGER: Schema = {"type": "string", "pattern": "^[0-9]{1,10}$"}


def obj(properties: Schema, required: tuple[str, ...] = (), **more: Any) -> Schema:
    """Make the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def wrapped(name: str, properties: Schema, required: tuple[str, ...] = (), **more: Any) -> Schema:
    """Make the schema of a body of the form {name: {properties}}."""
    return obj({name: obj(properties, required, **more)}, (name,))


def single(value: Schema) -> Schema:
    """A query parameter that is given once at the most."""
    return {"type": "array", "items": value, "maxItems": 1}


def multi(value: Schema) -> Schema:
    """A query parameter that may be repeated."""
    return {"type": "array", "items": value}


def query_of(parameters: Schema, strict: bool = False) -> Schema:
    """Make a query schema; the parameters' schemas come from ``single`` and ``multi``.

    :param strict: whether unknown parameters are an error, as they are from 2.75 on, rather than ignored.
    """
    return {"type": "object", "properties": parameters, "additionalProperties": not strict}


PAGE: Schema = {"limit": multi(QUERY_INTEGER), "marker": multi({"type": "string", "maxLength": 255})}
NO_QUERY = query_of({})


# --- formats ---------------------------------------------------------------------------------------------------------

_formats = jsonschema.FormatChecker(formats=())


@_formats.checks("uuid")
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or is_uuid_like(value)


@_formats.checks("name")
def _is_name(value: object) -> bool:
    return not isinstance(value, str) or (value.strip() == value and value.isprintable())


@_formats.checks("description")
def _is_description(value: object) -> bool:
    return not isinstance(value, str) or all(
        unicodedata.category(character)[0] != "C" or character in "\n\r\t" for character in value
    )


@_formats.checks("bounded_integer")
def _is_bounded_integer(value: object) -> bool:
    return not isinstance(value, str) or not value.isdecimal() or int(value) <= MAX_INT


@_formats.checks("date-time", raises=(ValueError, TypeError))
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or timeutils.parse_isotime(value) is not None


@_formats.checks("ipv4", raises=ValueError)
def _is_ipv4(value: object) -> bool:
    return not isinstance(value, str) or bool(ipaddress.IPv4Address(value))


@_formats.checks("ipv6", raises=ValueError)
def _is_ipv6(value: object) -> bool:
    return not isinstance(value, str) or bool(ipaddress.IPv6Address(value))


@_formats.checks("base64")
def _is_base64(value: object) -> bool:
    return (
        not isinstance(value, str)
        or re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.sub(r"\s", "", value))
        is not None
    )


# --- validators ------------------------------------------------------------------------------------------------------

# By identity; the schema is kept beside its validator so that its id is never given to another.
_compiled: dict[int, tuple[Schema, Any]] = {}


def _validator(schema: Schema) -> Any:
    known = _compiled.get(id(schema))
    if known is None:
        jsonschema.Draft202012Validator.check_schema(schema)
        known = _compiled[id(schema)] = (
            schema,
            jsonschema.Draft202012Validator(_with_strict_ends(schema), format_checker=_formats),
        )
    return known[1]


def _with_strict_ends(schema: Any) -> Any:
    """Return the schema with patterns whose "$" means the very end: Python's also stands before a last line feed."""
    if isinstance(schema, list):
        return [_with_strict_ends(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {_strict_end(pattern): _with_strict_ends(its) for pattern, its in part.items()}
        if name == "patternProperties"
        else _strict_end(part)
        if name == "pattern" and isinstance(part, str)
        else _with_strict_ends(part)
        for name, part in schema.items()
    }


def _strict_end(pattern: str) -> str:
    return pattern[:-1] + r"\Z" if pattern.endswith("$") and not pattern.endswith(r"\$") else pattern


def validate(value: Any, schema: Schema | Versioned[Schema], version: Version, what: str = "field/attribute") -> None:
    """Check a value against a schema as it is at a version.

    :param what: what the error sentence calls a part of the value.
    :raises BadRequest: saying which part is wrong, and why.
    """
    plain = schema.at(version) if isinstance(schema, Versioned) else schema
    if plain is None:
        raise exception.NotFound(f"API version {version} is not supported on this method.")
    error = next(_validator(plain).iter_errors(value), None)
    if error is not None:
        raise exception.BadRequest(_sentence(error, what))


def refuse_unknown(parameters: Schema, schema: Schema | Versioned[Schema], version: Version) -> None:
    """Refuse query parameters that the schema does not name, even if it lets them pass.

    :raises BadRequest: there are some.
    """
    plain = schema.at(version) if isinstance(schema, Versioned) else schema
    unknown = sorted(set(parameters) - set((plain or {}).get("properties", ())))
    if unknown:
        raise exception.BadRequest(unknown_parameters(unknown))


def unknown_parameters(names: list[str]) -> str:
    """Say that there are no such query parameters."""
    shown = ", ".join(name[:64] for name in names[:10])
    return f"Additional query parameters are not allowed here: {shown}. Leave them out."


def _sentence(error: Any, what: str) -> str:
    # The pattern in the message as it stands in the schema.
    reason = _shorten(error.message.replace(r"\\Z'", "$'"), 2 * _SHOWN)
    if not error.path:
        return reason
    return f"Invalid input for {what} {_shorten(str(error.path[-1]))}. Value: {_shorten(str(error.instance))}. {reason}"


def _shorten(text: str, length: int = _SHOWN) -> str:
    return text if len(text) <= length else f"{text[:length]}..."

# SPDX-License-Identifier: Apache-2.0
"""Values to JSON and back, checked against their types on arrival.

A value travels as {"nl": name, "v": fields}: the receiver needs no annotation to know what it got, and a message
whose fields do not match the type is refused before any code sees it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from nova_lite.objects import (
    action,
    build,
    diagnostics,
    flavor,
    group,
    image,
    instance,
    move,
    node,
    request_spec,
    resources,
    selection,
)

_MODULES = (
    action,
    build,
    diagnostics,
    flavor,
    group,
    image,
    instance,
    move,
    node,
    request_spec,
    resources,
    selection,
)
_TYPES: dict[str, type] = {
    kind.__name__: kind
    for module in _MODULES
    for kind in vars(module).values()
    if isinstance(kind, type) and dataclasses.is_dataclass(kind)
}


def to_wire(value: Any) -> Any:
    """Turn a value, or lists and dicts of values, into plain JSON types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"nl": type(value).__name__, "v": msgspec.to_builtins(value)}
    if isinstance(value, (list, tuple)):
        return [to_wire(item) for item in value]
    if isinstance(value, dict):
        return {key: to_wire(item) for key, item in value.items()}
    return value


def from_wire(value: Any) -> Any:
    """Undo ``to_wire``.

    :raises msgspec.ValidationError: the fields are not those of the type.
    """
    if isinstance(value, dict):
        if value.keys() == {"nl", "v"}:
            return msgspec.convert(value["v"], _TYPES[value["nl"]])
        return {key: from_wire(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_wire(item) for item in value]
    return value

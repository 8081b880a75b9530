# SPDX-License-Identifier: Apache-2.0
"""What an actor remembers while it stands before a transaction: the local variables of the code that it is in.

Two states in which the tables are equal and every actor remembers the same go on in the same ways, so that one of
them need not be followed. What is left out here must not matter to what is done next; what is left in needlessly only
costs time.
"""

from __future__ import annotations

import datetime
from dataclasses import fields, is_dataclass
from types import CodeType, FrameType
from typing import Any

import numpy as np

from nova_lite.scheduler.placer import Placer
from nova_lite.scheduler.view import View

#: Fields that are told to people and decide nothing.
_TOLD = {"fall_overs", "reason", "amounts", "spec"}
_LEFT_OUT = {"world", "conn"}
# Dicts by id(): their order is the order of the code, their keys differ from run to run.
_ADDRESS = 1 << 32


def of_frames(frame: FrameType | None) -> list[Any]:
    """Freeze the local variables of every function that stands on the stack and takes part in the protocol."""
    found: list[Any] = []
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("nova_lite.") or module == "tests.explorer.cases":
            found.append((frame.f_code.co_name, frame.f_lineno, _locals(frame)))
        frame = frame.f_back
    return found


def _locals(frame: FrameType) -> list[Any]:
    return [(name, frozen(value)) for name, value in sorted(frame.f_locals.items()) if name not in _LEFT_OUT]


def frozen(value: Any) -> Any:
    """Return a value that is printed the same if, and only if, it means the same."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, CodeType)):
        return len(value) if isinstance(value, bytes) else value.co_name
    if isinstance(value, (list, tuple)):
        return [frozen(each) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, map(frozen, value)))
    if isinstance(value, dict):
        return _frozen_dict(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, datetime.datetime):
        return "T"
    return _frozen_object(value)


def _frozen_dict(value: dict[Any, Any]) -> Any:
    if any(isinstance(key, int) and key > _ADDRESS for key in value):
        return [frozen(each) for each in value.values()]
    return sorted((repr(frozen(key)), repr(frozen(each))) for key, each in value.items())


def _frozen_object(value: Any) -> Any:
    if isinstance(value, Placer):
        return [frozen(value._view), [frozen(each.rows) for each in value._chooser._shortlists.values()]]
    if isinstance(value, View):
        nodes = [host.books.id for host in value.hosts]
        parts = (value.capacity, value.booked, value.building, value.failed_builds, value.up, value.enabled)
        return [nodes, *map(frozen, parts)]
    if is_dataclass(value) and not isinstance(value, type):
        return [frozen(getattr(value, field.name)) for field in fields(value) if field.name not in _TOLD]
    return type(value).__name__

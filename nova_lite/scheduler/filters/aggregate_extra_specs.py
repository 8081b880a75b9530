# SPDX-License-Identifier: Apache-2.0
"""A flavor's extra specs in the scope aggregate_instance_extra_specs must match the metadata of a host's aggregates.

The operators are those that operators know from Nova: = (at least, numbers), ==, !=, >=, <= (numbers), s==, s!=, s<,
s<=, s>, s>= (strings), <in> (substring), <all-in> (all words), <or> (one of several); without one, equality.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View

_SCOPE = "aggregate_instance_extra_specs:"

_NUMBERS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}
_STRINGS: dict[str, Callable[[str, str], bool]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
}


class AggregateExtraSpecsFilter(Filter):
    def passes(self, view: View, request: Request) -> Mask | None:
        wanted = _wanted(request)
        if not wanted:
            return None
        return np.array([_host_matches(view, host.host, wanted) for host in view.hosts], dtype=bool)

    def explain(self, request: Request) -> str:
        asked = ", ".join(f"{key}={value}" for key, value in sorted(_wanted(request).items()))
        return f"in no aggregate with the metadata that the flavor asks for ({asked})"


def _wanted(request: Request) -> dict[str, str]:
    specs = request.spec.flavor.extra_specs
    return {key[len(_SCOPE) :]: value for key, value in specs.items() if key.startswith(_SCOPE)}


def _host_matches(view: View, host: str, wanted: dict[str, str]) -> bool:
    for key, requirement in wanted.items():
        values: set[str] = set()
        for aggregate in view.aggregates_of(host):
            values.update(value.strip() for value in aggregate.metadata.get(key, "").split(",") if value.strip())
        if not any(matches(value, requirement) for value in values):
            return False
    return True


def matches(value: str, requirement: str) -> bool:
    """Tell whether a value satisfies a requirement of the small language above."""
    words = requirement.split()
    if not words:
        return value == requirement
    name, arguments = words[0], words[1:]
    if name == "<or>":
        return value in [word for word in arguments if word != "<or>"]
    if name == "<in>":
        return bool(arguments) and all(word in value for word in arguments if word != "<in>")
    if name == "<all-in>":
        return all(word in value for word in arguments)
    if name in _STRINGS and arguments:
        return _STRINGS[name](value, arguments[0])
    if name in _NUMBERS and arguments:
        try:
            return _NUMBERS[name](float(value), float(arguments[0]))
        except ValueError:
            return False
    return value == requirement

# SPDX-License-Identifier: Apache-2.0
"""Microversions: which are served, how a request asks for one, and values that change with them.

The headers are ``OpenStack-API-Version: compute 2.N`` (2.27 on) and ``X-OpenStack-Nova-API-Version: 2.N``; without
either a request is served at 2.1, and ``latest`` is the newest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from nova_lite import exception

T = TypeVar("T")


class Version(NamedTuple):
    """A microversion; versions compare as numbers do, part by part."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read "2.53".

        :raises BadRequest: it is not two numbers.
        """
        found = re.fullmatch(r"([1-9]\d*)\.([1-9]\d*|0)", text)
        if not found or len(text) > 16:
            raise exception.BadRequest(
                f"API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum."
            )
        return cls(int(found[1]), int(found[2]))


MINIMUM = Version(2, 1)
MAXIMUM = Version(2, 104)


class Versioned(Generic[T]):
    """A value that changes with the version: {"2.1": old, "2.19": new} is old up to 2.18 and new from 2.19 on.

    Before the first there is none, and none from where it is None.
    """

    def __init__(self, values: Mapping[str, T | None]) -> None:
        self._values = sorted(((Version.parse(s), v) for s, v in values.items()), key=lambda item: item[0])

    def at(self, version: Version) -> T | None:
        """Return the value at a version, None where there is none."""
        found: T | None = None
        for since, value in self._values:
            if since > version:
                break
            found = value
        return found


def requested(openstack_header: str | None, nova_header: str | None) -> Version:
    """Return the version that a request's headers ask for.

    :raises BadRequest: a version is not of the form N.M.
    :raises NotAcceptable: it is not served.
    """
    asked = nova_header
    for part in (openstack_header or "").split(","):
        words = part.split()
        if len(words) == 2 and words[0].lower() == "compute":
            asked = words[1]
    if not asked:
        return MINIMUM
    if asked.strip().lower() == "latest":
        return MAXIMUM
    version = Version.parse(asked.strip())
    if not MINIMUM <= version <= MAXIMUM:
        raise exception.NotAcceptable(version=version, minimum=MINIMUM, maximum=MAXIMUM)
    return version

# SPDX-License-Identifier: Apache-2.0
"""Generated requests to every operation of the API's description: what it promises holds, whatever is sent.

schemathesis makes the requests, some as the description wants them and some that are wrong in one way or another. No
answer is an unexpected error, each has a status and a form that are described, and what is refused changes nothing.
The requests are the same in every run; those marked long are many more, and at other versions and by other people too.
"""

from __future__ import annotations

import functools
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.specs.openapi import checks

from nova_lite.api import microversion, openapi
from nova_lite.api.microversion import Version
from tests.fixtures.furnished_api import FurnishedAPI

_NEWEST = str(microversion.MAXIMUM)
_OLDEST = str(microversion.MINIMUM)
_CHECKS = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
_MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
JSON_PATCH = "application/openstack-images-v2.1-json-patch"
# Tokens are what the requests are sent with: those of others cannot be had, and one's own must not be revoked.
_LEFT_OUT = {("delete", "/v3/auth/tokens")}

schemathesis.serializer.alias(JSON_PATCH, "application/json")


@functools.cache
def _described(version: str) -> Any:
    return schemathesis.openapi.from_dict(openapi.describe(Version.parse(version)))


def _operations(version: str) -> list[tuple[str, str]]:
    paths = openapi.describe(Version.parse(version))["paths"]
    found = [(method, path) for path, item in paths.items() for method in item if method != "parameters"]
    return [one for one in found if one not in _LEFT_OUT]


def _telling(version: str) -> list[tuple[str, str]]:
    """Leave out what all of a kind does: refusing to write to the network."""
    return [one for one in _operations(version) if one[0] == "get" or not one[1].startswith("/network")]


class Sender:
    """Sends what schemathesis makes up for an operation, and looks at what comes of it."""

    def __init__(self, api: FurnishedAPI, who: str, version: str) -> None:
        self._api = api
        self._headers = {"X-Auth-Token": api.token(who)}
        self._version = version
        self.sent = 0

    def send(self, method: str, path: str, mode: schemathesis.GenerationMode, examples: int, *, real: bool) -> None:
        """Send requests.

        :param real: whether the path names things that there are, and not just anything.
        """
        known = {name: value for name, value in self._api.names.items() if f"{{{name}}}" in path} if real else None
        operation = _described(self._version)[path][method]

        @hypothesis.settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode, path_parameters=known))
        def each(case: Any) -> None:
            self._check(case)

        try:
            each()
        except hypothesis.errors.Unsatisfiable:
            # Nothing can be wrong about a request that says nothing.
            assert mode is schemathesis.GenerationMode.NEGATIVE

    def _check(self, case: Any) -> None:
        self.sent += 1
        try:
            answer = case.call(app=self._api.app, headers=self._headers, base_url="http://localhost")
            # An answer without a body has no form to look at.
            case.validate_response(answer, checks=_CHECKS if answer.content else _CHECKS[:1])
            if answer.status_code >= 400:
                assert not self._api.is_changed(), f"{answer.status_code}, and yet something has changed: {case!r}"
        finally:
            self._api.put_back()


@pytest.mark.parametrize(("method", "path"), _telling(_NEWEST))
def test_the_description_is_kept(furnished: FurnishedAPI, method: str, path: str) -> None:
    sender = Sender(furnished, "admin", _NEWEST)

    sender.send(method, path, _MODES[0], 1, real=True)
    sender.send(method, path, _MODES[1], 1, real=True)

    assert sender.sent


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "who", "method", "path"),
    [
        (version, who, *operation)
        for version, who in ((_OLDEST, "admin"), ("2.53", "admin"), (_NEWEST, "alice"), (_NEWEST, "bob"))
        for operation in _telling(version)
    ],
)
def test_the_description_is_kept_at_every_turn(
    furnished: FurnishedAPI, version: str, who: str, method: str, path: str
) -> None:
    sender = Sender(furnished, who, version)

    for mode in _MODES:
        sender.send(method, path, mode, 8, real=True)
        sender.send(method, path, mode, 2, real=False)

    assert sender.sent

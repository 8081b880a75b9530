# SPDX-License-Identifier: Apache-2.0
"""Whole stacks: several hosts on this machine, made and removed by the scripts of devstack/."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.fixtures import stack as stack_fixture
from tests.fixtures.stack import Stack


@pytest.fixture(scope="module")
def make_stack() -> Iterator[Callable[..., Stack]]:
    """Make a stack with these settings of local.conf; it is taken down at the end."""
    lacks = stack_fixture.missing()
    if lacks:
        reason = "a stack needs " + "; ".join(lacks)
        if os.environ.get("NOVA_LITE_REQUIRE_LIBVIRT") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    made: list[Stack] = []

    def make(more: str = "", **settings: str) -> Stack:
        made.append(Stack(more, **settings))
        return made[-1]

    yield make
    for each in made:
        each.remove()

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1858548: a notice of a host's failure that comes twice moves its servers twice.

The second was handled after the first had been. Here a server is evacuated from the host that its row names, if that is
certain to be dead: after the first time, that is another one. Of two at once, one is refused.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import ApiError, at_once
from tests.fixtures.movers import Movers


def test_an_evacuation_that_is_asked_for_again_later(moving: Movers) -> None:
    server = moving.boot(host="host1")
    moving.force_down("host1")
    moving.evacuate(server, "host2")
    assert moving.settled(server) == ("ACTIVE", "host2")
    for host in ("host3", None):
        with pytest.raises(ApiError, match="400.*still in use"):
            moving.evacuate(server, host)
    assert moving.migrations(server)[1:] == []
    moving.only_on(server, "host2")


def test_two_at_once(moving: Movers) -> None:
    server = moving.boot(host="host1")
    moving.force_down("host1")
    refusals: list[int] = []

    def evacuate(_number: int) -> None:
        try:
            moving.evacuate(server)
        except ApiError as error:
            refusals.append(error.status)

    with moving.faults(server={"spawn": {"delay": 0.3}}):
        at_once(4, evacuate)
        status, host = moving.settled(server)
    assert refusals == [409] * 3
    assert status == "ACTIVE" and len(moving.migrations(server)) == 1
    moving.only_on(server, host)

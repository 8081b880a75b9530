# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1852610 and 1756179: a compute service is deleted under a server that is there, or may yet come back.

What was booked on its nodes had no owner any more. Here it is refused as long as a server or a move needs the host.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import ApiError
from tests.fixtures.movers import Movers


def refused(moving: Movers, host: str) -> str:
    with pytest.raises(ApiError) as refusal:
        moving.client.call("DELETE", f"/os-services/{moving.service(host)['id']}")
    assert refusal.value.status == 409
    return refusal.value.body


@pytest.mark.parametrize("end", ["confirmResize", "revertResize"])
def test_a_service_is_deleted_while_a_resize_waits(moving: Movers, end: str) -> None:
    server = moving.boot(host="host1")
    assert "hosting instances" in refused(moving, "host1")
    moving.act(server, "migrate", {"host": "host2"})
    assert moving.settled(server) == ("VERIFY_RESIZE", "host2")
    assert "in-progress migrations" in refused(moving, "host1")
    assert "hosting instances" in refused(moving, "host2")
    with moving.faults(server={"clean": {"delay": 0.4}, "discard": {"delay": 0.4}}):
        moving.act(server, end)
        for host in ("host1", "host2"):
            refused(moving, host)
        home = moving.becomes(server, "ACTIVE")
    assert home == ("host2" if end == "confirmResize" else "host1")
    assert moving.in_use() == {home: 1}
    moving.agree()


def test_a_service_is_deleted_while_a_server_comes(moving: Movers) -> None:
    server = moving.boot(host="host1")
    with moving.faults(server={"live_migrate": {"seconds": 1}}):
        moving.live_migrate(server, "host2")
        moving.running(server)
        assert "in-progress migrations" in refused(moving, "host2")
        assert moving.settled(server) == ("ACTIVE", "host2")

# SPDX-License-Identifier: Apache-2.0
"""openstack-dev of January 2013, message 4501: that a guest has shut itself down is noticed ten minutes later.

Only a periodic comparison told. Here the hypervisor's event does, within moments, and the comparison is there for the
events that get lost.
"""

from __future__ import annotations

import time

import pytest

from nova_lite.objects import instance as states
from tests.fixtures.client import Client
from tests.fixtures.cloud import wait_for
from tests.fixtures.inside import InsideCloud


@pytest.mark.parametrize("event_arrives", [True, False])
def test_a_guest_that_powers_itself_off(
    inside: InsideCloud, client: Client, event_arrives: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = client.boot("guest", client.flavor())
    client.settle([server])
    if not event_arrives:
        monkeypatch.setattr(inside.driver, "_events", lambda _uuid: None)
    began = time.monotonic()
    inside.driver.guest_powers_off(server)
    wait_for(lambda: client.server(server)["status"] == "SHUTOFF", 5)
    assert time.monotonic() - began < 5
    assert client.server(server)["OS-EXT-STS:power_state"] == states.SHUTDOWN
    # It is what it is, and can be started again.
    client.act(server, os_start=None)
    assert client.settle([server])[0]["status"] == "ACTIVE"
    client.delete([server])

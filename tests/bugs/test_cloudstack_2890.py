# SPDX-License-Identifier: Apache-2.0
"""apache/cloudstack#2890, kubevirt/kubevirt#16622, ganeti/ganeti#1018: two copies of a guest run, and spoil its disks.

A host that was not heard any more counted as dead, and its guests were started elsewhere; they went on running where
they were, too. Here silence proves nothing: until somebody says that the host is off, nothing of it is evacuated or
moved, and when it is heard again, nothing has happened.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import ApiError
from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack


def test_a_host_is_cut_off(rack: Rack, racked: Movers) -> None:
    server = racked.boot(host="host1")
    with rack.cut_off("host1"):
        racked.wait_for_service("host1", "down")
        with pytest.raises(ApiError, match="409.*may still be running"):
            racked.evacuate(server)
        with pytest.raises(ApiError, match="409"):
            racked.live_migrate(server)
        assert racked.migrations(server) == []
    racked.wait_for_service("host1", "up")
    assert racked.settled(server) == ("ACTIVE", "host1")
    racked.only_on(server, "host1")
    assert racked.in_use() == {"host1": 1}

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1414065 and 1662626: what fails after a live migration has switched over breaks the server's record.

It was shown as off, and its user started a second copy; or it stayed "migrating" for ever. Here the server's row
follows its guest before anything is tidied up, and what cannot be tidied up costs the server nothing.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import ApiError
from tests.fixtures.cloud import Cloud
from tests.fixtures.movers import Movers

BROKEN = {"fail": "out of luck"}


@pytest.mark.parametrize("steps", [("land",), ("clean",), ("land", "clean")], ids="+".join)
def test_a_step_fails(moving: Movers, steps: tuple[str, ...]) -> None:
    server = moving.boot(host="host1")
    with moving.faults(server=dict.fromkeys(steps, BROKEN)):
        moving.live_migrate(server, "host2")
        assert moving.settled(server) == ("ACTIVE", "host2")
        assert moving.migrations(server) == [("live-migration", "completed")]
        assert moving.in_use() == {"host2": 1}
        with pytest.raises(ApiError, match="409"):
            moving.act(server, "os-start")
    moving.only_on(server, "host2")
    assert moving.client.server(server)["OS-EXT-STS:power_state"] == 1
    moving.agree()


def test_the_power_is_cut(moving_hosts_running: Cloud, moving: Movers) -> None:
    server = moving.boot(host="host1")
    with moving.faults(server={"land": {"delay": 60}}):
        moving.live_migrate(server, "host2")
        # The row follows at once, so that whoever looks finds the guest.
        while moving.host_of(server) != "host2":
            assert moving.client.server(server)["status"] == "MIGRATING"
        with pytest.raises(ApiError, match="409"):
            moving.act(server, "os-start")
        moving_hosts_running.processes[0].kill()
    moving_hosts_running.processes[0].start_again()
    moving_hosts_running.wait_until_up()
    assert moving.settled(server) == ("ACTIVE", "host2")
    assert moving.migrations(server) == [("live-migration", "completed")]
    moving.only_on(server, "host2")
    moving.agree()

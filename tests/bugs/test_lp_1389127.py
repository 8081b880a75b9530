# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1389127: a restart in the middle of a resize leaves the server in RESIZE_PREP for ever.

Nobody knew any more what was under way. Here the operation is a row with a lease: whoever comes next goes on with it,
and if that cannot be, the server is what it was and its destination is free.
"""

from __future__ import annotations

import pytest

from tests.fixtures.cloud import Cloud
from tests.fixtures.movers import Movers


@pytest.mark.parametrize("fails", [True, False])
def test_the_power_is_cut(moving_hosts_running: Cloud, moving: Movers, fails: bool) -> None:
    server = moving.boot(host="host1")
    with moving.faults(server={"prepare_destination": {"delay": 60}}):
        moving.act(server, "resize", {"flavorRef": moving.large})
        moving.reaches(server, "resize_prep")
        moving_hosts_running.processes[0].kill()
    with moving.faults(server={"prepare_destination": {"fail": "not after that"}} if fails else {}):
        moving_hosts_running.processes[0].start_again()
        moving_hosts_running.wait_until_up()
        status, host = moving.settled(server)
    if fails:
        assert (status, host) == ("ACTIVE", "host1")
        assert moving.in_use() == {"host1": 1}
        moving.only_on(server, "host1")
    else:
        assert status == "VERIFY_RESIZE"
        # Its own host may be chosen as well, and holds the larger of the two sizes then.
        assert moving.in_use() == {"host1": 1, host: 2}
    moving.agree()

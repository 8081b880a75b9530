# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1849165: a host's periodic task meets a migration that is on record while its context is not, and fails.

The two were written one after the other. Here a move is a row, the operation that drives it another, and the server's
state a third, all of one transaction; until the destination is granted, it has nothing there that could be looked at.
"""

from __future__ import annotations

from nova_lite.db import moves, operations
from nova_lite.db.instances import Caller
from nova_lite.objects import instance as states
from tests.fixtures.auditing import audited, opened
from tests.fixtures.cloud import Cloud
from tests.fixtures.movers import Movers


def test_the_api_dies_before_anybody_hears_of_a_move(moving_hosts_running: Cloud, moving: Movers) -> None:
    server = moving.boot(host="host1")
    tenant = moving.client.server(server)
    caller = Caller(tenant["tenant_id"], tenant["user_id"], "req-nobody-heard-of-it")
    with opened(moving_hosts_running) as (options, database), audited(moving_hosts_running) as looks:
        kind, allowed = operations.MIGRATE, (states.ACTIVE,)
        database.write(
            lambda conn: moves.begin(conn, options, server, kind=kind, caller=caller, vm_states=allowed, host="host2")
        )
        while True:  # Meanwhile the computes report as often as the books are audited.
            booked = moving.in_use()
            if moving.migrations(server) != [("migration", "accepted")]:
                break
            assert booked == {"host1": 1}
        # The sweep has found it.
        assert moving.settled(server) == ("VERIFY_RESIZE", "host2")
    assert set(looks) == {""}
    assert moving.in_use() == {"host1": 1, "host2": 1}
    assert "periodic task failed" not in moving_hosts_running.logs()

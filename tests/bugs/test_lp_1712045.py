# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1712045: the source of a live migration stays charged for the server that left.

Here the transaction that publishes the migration as completed gives the source's half back.
"""

from __future__ import annotations

from tests.fixtures.movers import Movers


def test_the_source_is_free_when_the_migration_is_completed(moving: Movers) -> None:
    whole = moving.client.flavor("whole", vcpus=4)
    server = moving.boot(host="host1", flavor=whole)
    for there in ("host2", "host1"):
        moving.live_migrate(server, there)
        assert moving.settled(server) == ("ACTIVE", there)
        assert moving.in_use() == {there: 4}
        assert moving.migrations(server)[-1] == ("live-migration", "completed")
    moving.live_migrate(server, "host3")
    assert moving.settled(server) == ("ACTIVE", "host3")
    moving.boot("successor", "host1", flavor=whole)
    moving.agree()

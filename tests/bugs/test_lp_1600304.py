# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1600304: a migration that failed long ago charges its destination for the one that is under way.

A host's periodic task found the old record, and took it for the server's. Here an allocation names the move that it is
for, and the end of that move, failed or not, takes it along.
"""

from __future__ import annotations

from tests.fixtures.movers import Movers


def test_a_server_moves_elsewhere_after_a_failed_migration(moving: Movers) -> None:
    server = moving.boot(host="host1")
    for step in ("prepare_destination", "move_out", "finish_migration"):
        with moving.faults(server={step: {"fail": "the cable is broken"}}):
            moving.act(server, "migrate", {"host": "host2"})
            assert moving.settled(server) == ("ACTIVE", "host1")
        assert moving.in_use() == {"host1": 1}
    moving.boot("whole", "host2", flavor=moving.client.flavor("whole", vcpus=4))
    moving.act(server, "migrate", {"host": "host3"})
    assert moving.settled(server) == ("VERIFY_RESIZE", "host3")
    assert moving.in_use() == {"host1": 1, "host2": 4, "host3": 1}
    assert moving.migrations(server) == [("migration", "error")] * 3 + [("migration", "finished")]
    moving.agree()

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1825537: a resize that fails at its end loses the charge of the host that the guest is on.

The row named one host, and the half of that one was dropped. Here whatever fails, the server keeps the half of the host
that its row names; and if it cannot be said where its guest runs, it is in ERROR there, and nothing starts it.
"""

from __future__ import annotations

import pytest

from tests.fixtures.movers import Movers

BROKEN = {"fail": "the cable is broken"}


def test_the_destination_cannot_finish(moving: Movers) -> None:
    server = moving.boot(host="host1")
    with moving.faults(server={"finish_migration": BROKEN}):
        moving.act(server, "migrate", {"host": "host2"})
        assert moving.settled(server) == ("ACTIVE", "host1")
    assert moving.in_use() == {"host1": 1}
    moving.only_on(server, "host1")
    assert moving.client.server(server)["OS-EXT-STS:power_state"] == 1
    moving.agree()


@pytest.mark.parametrize("undoing", ["discard", "restore"])
def test_nor_can_it_be_undone(moving: Movers, undoing: str) -> None:
    server = moving.boot(host="host1")
    with moving.faults(server={"finish_migration": BROKEN, undoing: {"fail": "and so is the other"}}):
        moving.act(server, "migrate", {"host": "host2"})
        assert moving.settled(server) == ("ERROR", "host1")
    said = moving.client.server(server)["fault"]["message"]
    assert "the cable is broken" in said and "and so is the other" in said
    assert moving.in_use() == {"host1": 1}
    assert moving.migrations(server) == [("migration", "error")]
    moving.agree()
    # What may have been made there is removed, since the row and the record of the move are proof; then it can start.
    moving.only_on(server, "host1")
    moving.act(server, "reboot", {"type": "HARD"})
    assert moving.becomes(server, "ACTIVE") == "host1"
    moving.only_on(server, "host1")

# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1821594: a resize whose confirmation fails stays charged on its source.

The error was raised before the charge was dropped. Here the server has its place at the destination since long; what
the source could not remove is removed when it next reports what it has, and holds nothing meanwhile.
"""

from __future__ import annotations

from tests.fixtures.movers import Movers


def test_the_source_cannot_clean_up(moving: Movers) -> None:
    server = moving.boot(host="host1")
    moving.act(server, "resize", {"flavorRef": moving.large})
    status, host = moving.settled(server)
    assert status == "VERIFY_RESIZE" and host != "host1"
    with moving.faults(host1={"clean": {"fail": "the disk is busy"}}):
        moving.act(server, "confirmResize")
        assert moving.becomes(server, "ACTIVE") == host
        assert "the disk is busy" in moving.details(server)
        assert moving.migrations(server) == [("resize", "confirmed")]
        assert moving.in_use() == {host: 2}
        assert "host1/disk" in moving.files(server)
        moving.agree()
    moving.only_on(server, host)
    moving.act(server, "reboot", {"type": "HARD"})
    assert moving.settled(server) == ("ACTIVE", host)

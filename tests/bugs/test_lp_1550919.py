# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1550919: an evacuation that fails deletes the disk, which source and destination share.

What the destination cleaned up after its failure was the only copy. Here a destination removes what it has made itself,
and a disk that was there before is not of that kind; nor does the host that returns remove it.
"""

from __future__ import annotations

import pytest

from tests.fixtures.client import wait_until_empty
from tests.fixtures.cloud import wait_for
from tests.fixtures.inside import InsideCloud
from tests.fixtures.movers import Movers


@pytest.fixture
def sharing(inside: InsideCloud) -> Movers:
    inside.conf.set_override("shared_disks", True, group="fake")
    return Movers(inside)


def test_a_destination_fails_on_shared_storage(sharing: Movers) -> None:
    server = sharing.boot(host="host1")
    disk = sharing.domains_path / "shared" / f"{server}.disk"
    disk.write_text("all that its user has")
    sharing.force_down("host1")
    with sharing.faults(server={"adopt": {"fail": "it does not come up"}}):
        sharing.evacuate(server)
        assert sharing.settled(server) == ("ACTIVE", "host1")
    assert "it does not come up" in sharing.details(server)
    assert sharing.files(server) == ["host1/json", "shared/disk"]
    assert sharing.in_use() == {"host1": 1}

    sharing.evacuate(server, "host2")
    assert sharing.settled(server) == ("ACTIVE", "host2")
    wait_until_empty(lambda: [] if sharing.files(server) == ["host2/json", "shared/disk"] else ["not yet"], 20)
    sharing.wait_until_in_use({"host2": 1})
    # Neither does a move that comes back.
    sharing.force_down("host1", False)
    with sharing.faults(server={"finish_migration": {"fail": "it does not come up"}}):
        sharing.act(server, "migrate", {"host": "host3"})
        assert sharing.settled(server) == ("ACTIVE", "host2")
    sharing.act(server, "migrate", {"host": "host3"})
    assert sharing.settled(server) == ("VERIFY_RESIZE", "host3")
    sharing.act(server, "revertResize")
    assert sharing.becomes(server, "ACTIVE") == "host2"
    assert disk.read_text() == "all that its user has"
    sharing.client.delete([server])
    wait_for(lambda: not disk.exists(), 20)

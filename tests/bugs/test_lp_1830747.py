# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1830747 and 1741125: a move that fails on its first destination is not tried on another.

The retry lacked the group's id, which the message of the time did not carry; or it began while the first attempt was
still being undone. Here an attempt that fails gives its half back in the transaction that lets the next one begin, and
each attempt reads the group anew.
"""

from __future__ import annotations

from tests.fixtures.movers import Movers


def test_a_member_goes_to_the_second_destination(moving: Movers) -> None:
    group = moving.client.group("anti-affinity")
    moving.boot("member", "host4", group=group)
    server = moving.boot("mover", "host1", group=group)
    moving.boot("filler", "host3", flavor=moving.large)  # so that host2 is tried first
    with moving.faults(host2={"prepare_destination": {"fail": "full of cobwebs"}}):
        moving.act(server, "resize", {"flavorRef": moving.large})
        assert moving.settled(server) == ("VERIFY_RESIZE", "host3")
    assert "full of cobwebs" in moving.details(server)
    assert moving.in_use() == {"host1": 1, "host3": 4, "host4": 1}
    moving.agree()
    moving.act(server, "confirmResize")
    assert moving.becomes(server, "ACTIVE") == "host3"
    moving.only_on(server, "host3")


def test_a_member_stays_if_the_only_other_destination_holds_one(moving: Movers) -> None:
    group = moving.client.group("anti-affinity")
    for host in ("host3", "host4"):
        moving.boot(f"member-{host}", host, group=group)
    server = moving.boot("mover", "host1", group=group)
    with moving.faults(host2={"prepare_destination": {"fail": "full of cobwebs"}}):
        moving.act(server, "migrate", None)
        assert moving.settled(server) == ("ACTIVE", "host1")
    said = moving.details(server)
    assert "host2: full of cobwebs" in said and "2 already with 1 member of the anti-affinity group" in said
    assert moving.in_use() == {"host1": 1, "host3": 1, "host4": 1}

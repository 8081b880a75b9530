# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1712718: what a failed attempt had claimed on its host stays charged after the next attempt.

Here a failed attempt gives back what it held in the transaction that lets the next one begin, and a server that is
deleted in the middle takes all of it along.
"""

from __future__ import annotations

from tests.fixtures.client import wait_until_empty
from tests.fixtures.movers import Movers

BROKEN = {"spawn": {"fail": "no space left"}, "prepare_destination": {"fail": "no space left"}}


def test_a_boot_succeeds_on_its_third_host(moving: Movers) -> None:
    whole = moving.client.flavor("whole", vcpus=4)
    moving.change_service("host4", status="disabled")
    moving.boot("filler", "host3")  # so that the others are tried first
    with moving.faults(host1=BROKEN, host2=BROKEN):
        server = moving.boot("third-try")
    assert moving.host_of(server) == "host3"
    assert moving.in_use() == {"host3": 2}
    for host in ("host1", "host2"):
        moving.boot(f"all-of-{host}", host, flavor=whole)


def test_a_migration_succeeds_on_its_third_host(moving: Movers) -> None:
    server = moving.boot(host="host1")
    moving.boot("filler", "host4")
    with moving.faults(host2=BROKEN, host3=BROKEN):
        moving.live_migrate(server)
        assert moving.settled(server) == ("ACTIVE", "host4"), moving.details(server)
    assert moving.in_use() == {"host4": 2}
    moving.only_on(server, "host4")


def test_a_server_is_deleted_while_it_is_tried_again(moving: Movers) -> None:
    server = moving.boot(host="host1")
    with moving.faults(host2=BROKEN, host3=BROKEN, host4={"prepare_destination": {"delay": 0.5}}):
        moving.act(server, "migrate", None)
        wait_until_empty(lambda: [] if moving.in_use().get("host4") else ["not there yet"], 20)
        moving.client.delete([server])
        assert moving.in_use() == {}

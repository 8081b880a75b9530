# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1742827: hosts that are alive vanish from scheduling.

A request that fits on few hosts leaves the others out of a cache that all requests share, and the next request is only
offered what is left. Here a request's candidates are a mask of its own over one view of all hosts.
"""

from __future__ import annotations

from tests.fixtures.scheduling import Scheduling


def test_small_and_large_requests_in_turn(scheduling: Scheduling) -> None:
    sizes = {f"host{number}": 40 if number <= 2 else 4 for number in range(1, 9)}
    for host, vcpus in sizes.items():
        scheduling.add_host(host, vcpus=vcpus)
    placer = scheduling.placer()
    for host in sizes:
        large, small, impossible = placer.place(
            [scheduling.request(vcpus=8), scheduling.request(host=host), scheduling.request(vcpus=100)]
        )
        assert sizes[large.host or ""] == 40
        assert small.host == host
        assert impossible.reason is not None and "Of 8 hosts: 8 without room" in impossible.reason

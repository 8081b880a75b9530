# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1488986: two schedulers pick the same host, each from a picture of its own.

What one gives away the other learns only when the host refuses, after the server was sent there. Here the second one's
grant is found lost the moment that it is written, and the request goes to the other host.
"""

from __future__ import annotations

from tests.fixtures.scheduling import Scheduling


def test_two_warm_schedulers_want_one_place(scheduling: Scheduling) -> None:
    scheduling.add_host("best", vcpus=1, memory_mb=8192)
    scheduling.add_host("spare", vcpus=1, memory_mb=1024)
    first = scheduling.placer(seed=1)
    second, db = scheduling.placer_and_database(seed=2)
    for placer in (first, second):
        assert placer.place([scheduling.request(vcpus=99)])[0].grant_id is None
    one, other = scheduling.request(), scheduling.request()
    taken: list[str] = []

    def between(step: str) -> None:
        # The second has chosen, and is about to write its grant.
        if "_write.<locals>" in step and not taken:
            taken.append(scheduling.boot(first, one))

    db.step_hook = between
    (selection,) = second.place([other])

    assert taken == ["best"]
    assert (selection.host, selection.fall_overs) == ("spare", 1)
    assert scheduling.consume(selection).granted

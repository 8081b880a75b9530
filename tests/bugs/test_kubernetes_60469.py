# SPDX-License-Identifier: Apache-2.0
"""kubernetes/kubernetes#60469: a second scheduler keeps filling nodes that are full.

Its picture of the cluster holds only what it has placed itself. Here whoever starts late reads the same books as the
others, and never so much as writes a grant on a full host.
"""

from __future__ import annotations

from tests.fixtures.books import disagreements
from tests.fixtures.scheduling import Scheduling


def test_a_scheduler_that_starts_on_a_full_cloud(scheduling: Scheduling) -> None:
    for number in range(1, 6):
        scheduling.add_host(f"host{number}", vcpus=2)
    first = scheduling.placer()
    late = scheduling.placer()
    # Half of the places are granted and not claimed yet, the others are claimed.
    selections = first.place([scheduling.request() for _ in range(10)])
    for selection in selections[::2]:
        scheduling.consume(selection)
    before = scheduling.tickets()

    refused = late.place([scheduling.request() for _ in range(5)])

    assert [selection.grant_id for selection in refused] == [None] * 5
    assert all("5 without room" in (selection.reason or "") for selection in refused)
    assert scheduling.tickets() == before
    assert all(scheduling.consume(selection).granted for selection in selections[1::2])
    assert not disagreements(scheduling.url)

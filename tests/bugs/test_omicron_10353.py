# SPDX-License-Identifier: Apache-2.0
"""oxidecomputer/omicron#10353 and #10393: a start hangs under contention.

The host that was found loses its room before the reservation is written; the loop that looks for another tried every
permutation of something that had nothing to do with it. Here a lost host is left alone, the next one is tried at once,
and there are never more tries than hosts.
"""

from __future__ import annotations

import pytest

from tests.fixtures.scheduling import Scheduling

HOSTS = 5


@pytest.mark.parametrize("lost", [1, 3, HOSTS])
def test_hosts_fill_up_between_find_and_write(scheduling: Scheduling, lost: int) -> None:
    for number in range(1, HOSTS + 1):
        scheduling.add_host(f"host{number}", vcpus=number)
    victim, db = scheduling.placer_and_database()
    rival = scheduling.placer()
    # The rival takes what is left of the largest hosts, one after the other, each time before the victim writes.
    rivals = [scheduling.request(vcpus=HOSTS - i, host=f"host{HOSTS - i}") for i in range(lost)]
    wanted = scheduling.request()
    steps: list[str] = []

    def between(step: str) -> None:
        # A round writes its grants and rereads them: two steps.
        if "_write.<locals>" in step or "_reread.<locals>" in step:
            steps.append(step)
            if rivals and victim._picked:
                (node_id,) = victim._picked.values()
                if f"host{node_id}" == rivals[0].requested_host:
                    scheduling.boot(rival, rivals.pop(0))

    db.step_hook = between
    (selection,) = victim.place([wanted])

    assert not rivals
    assert selection.fall_overs == lost
    if lost == HOSTS:
        assert selection.grant_id is None and "5 without room" in (selection.reason or "")
    else:
        assert selection.host == f"host{HOSTS - lost}"

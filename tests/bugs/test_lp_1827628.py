# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1827628: a member of an affinity group finds no valid host, though its group's host has room.

The list of candidates was cut to a limit before the group's rule was looked at, and the group's host was not among the
first. Here the rules are masks over all hosts, and nothing is cut.
"""

from __future__ import annotations

from nova_lite.objects.group import AFFINITY
from tests.fixtures.scheduling import Scheduling


def test_a_group_at_home_on_the_fullest_of_fifty_hosts(scheduling: Scheduling) -> None:
    for number in range(1, 51):
        scheduling.add_host(f"host{number}")
    group = scheduling.group(AFFINITY)
    placer = scheduling.placer()
    assert scheduling.boot(placer, scheduling.request(vcpus=2, group=group, host="host40")) == "host40"
    scheduling.boot(placer, scheduling.request(host="host40"))

    # Once by who knows the group, once by who has never seen it; the second finds it full.
    assert scheduling.boot(scheduling.placer(), scheduling.request(group=group)) == "host40"
    (refused,) = placer.place([scheduling.request(group=group)])
    assert refused.host is None
    assert refused.reason is not None
    assert "49 not the home of the affinity group" in refused.reason and "1 without room" in refused.reason

# SPDX-License-Identifier: Apache-2.0
"""shakenfist/shakenfist#3565: a host's free memory outweighs affinity.

Where a rule is one score among others, a large enough host breaks it. Here the strict policies are filters, which no
weight can beat, and the soft ones are weights above those of free resources, which room can beat.
"""

from __future__ import annotations

import pytest

from nova_lite.objects.group import AFFINITY, ANTI_AFFINITY, SOFT_AFFINITY, SOFT_ANTI_AFFINITY
from tests.fixtures.scheduling import Scheduling


@pytest.fixture
def hosts(scheduling: Scheduling) -> Scheduling:
    """One small and one huge host."""
    scheduling.add_host("small", vcpus=2, memory_mb=1024)
    scheduling.add_host("huge", vcpus=1000, memory_mb=10_000_000)
    return scheduling


@pytest.mark.parametrize(
    ("policy", "member_on", "expected"),
    [
        (AFFINITY, "small", "small"),
        (SOFT_AFFINITY, "small", "small"),
        (ANTI_AFFINITY, "huge", "small"),
        (SOFT_ANTI_AFFINITY, "huge", "small"),
    ],
)
def test_a_policy_beats_free_memory(hosts: Scheduling, policy: str, member_on: str, expected: str) -> None:
    group = hosts.group(policy)
    placer = hosts.placer()
    hosts.boot(placer, hosts.request(group=group, host=member_on))
    assert hosts.boot(placer, hosts.request(group=group)) == expected


@pytest.mark.parametrize("policy", [AFFINITY, SOFT_AFFINITY])
def test_room_beats_the_soft_policy_alone(hosts: Scheduling, policy: str) -> None:
    group = hosts.group(policy)
    placer = hosts.placer()
    hosts.boot(placer, hosts.request(group=group, host="small", vcpus=2))
    (selection,) = placer.place([hosts.request(group=group)])
    assert selection.host == ("huge" if policy == SOFT_AFFINITY else None)


def test_a_soft_member_shares_a_host_when_there_is_no_other(hosts: Scheduling) -> None:
    group = hosts.group(SOFT_ANTI_AFFINITY)
    placer = hosts.placer()
    hosts.boot(placer, hosts.request(vcpus=2, host="small"))
    places = [hosts.boot(placer, hosts.request(group=group)) for _ in range(3)]
    assert places == ["huge"] * 3

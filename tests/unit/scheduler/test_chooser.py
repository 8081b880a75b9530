# SPDX-License-Identifier: Apache-2.0
"""The chooser chooses from its shortlist what it would have chosen from all hosts."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from typing import Any

import numpy as np
import pytest
from oslo_config import cfg

from nova_lite import conf
from nova_lite.db.hosts import Host
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.group import ANTI_AFFINITY, SOFT_ANTI_AFFINITY, Group
from nova_lite.objects.ledger import NodeBooks
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.resources import Resources
from nova_lite.scheduler.chooser import SHORTLIST, Chooser
from nova_lite.scheduler.filters.capacity import CapacityFilter
from nova_lite.scheduler.filters.compute import ComputeFilter
from nova_lite.scheduler.filters.server_group import ServerGroupFilter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import View
from nova_lite.scheduler.weighers.cpu import CpuWeigher
from nova_lite.scheduler.weighers.ram import RamWeigher
from nova_lite.scheduler.weighers.soft_anti_affinity import SoftAntiAffinityWeigher

ROOM = Resources(8, 8192, 100)


def host(node_id: int, used: Resources) -> Host:
    return Host(
        revision=0,
        books=NodeBooks(node_id, ROOM, used),
        pending=Resources(),
        total=ROOM,
        service_id=node_id,
        host=f"host{node_id}",
        node=f"host{node_id}",
        server="server",
        disabled=False,
        forced_down=False,
        instances=0,
        building=0,
        failed_builds=0,
        hypervisor_type="fake",
        hypervisor_version=1,
        architectures=frozenset(),
        vm_modes=frozenset(),
    )


class World:
    """A view of hosts, a chooser on it, and what a placer does with its choices."""

    def __init__(self, used: list[Resources]) -> None:
        options = cfg.ConfigOpts()
        conf.register(options)
        options([], default_config_files=[], default_config_dirs=[])
        self.view = View(options, None)  # type: ignore[arg-type]
        self.view._replace([host(node_id, amounts) for node_id, amounts in enumerate(used, start=1)])
        filters: list[Any] = [kind(options) for kind in (ComputeFilter, CapacityFilter, ServerGroupFilter)]
        self.weighers: list[Any] = [kind(options) for kind in (RamWeigher, CpuWeigher, SoftAntiAffinityWeigher)]
        self.near_equal = 0.05
        self.chooser = Chooser(self.view, filters, self.weighers, self.near_equal, random.Random(1))

    def choose(self, request: Request) -> int | None:
        row = self.chooser.choose(request)
        if row is not None:
            self.view.take(row, request.amounts)
            if request.spec.group:
                request.members[self.view.hosts[row].books.id] += 1
        return row

    def lag(self, row: int, request: Request) -> float:
        """Return how much less than the best of all hosts with room the row weighs."""
        rows = np.flatnonzero(np.all(self.view.booked + request.amounts <= self.view.capacity, axis=1))
        total = sum(w for w in (each.weigh(self.view, rows, request) for each in self.weighers) if w is not None)
        return float(np.max(total) - total[np.flatnonzero(rows == row)[0]]) if np.ndim(total) else 0.0


def request(vcpus: int = 1, group: Group | None = None, members: Counter[int] | None = None) -> Request:
    flavor = Flavor("f", "f", vcpus, 512 * vcpus, 1)
    made = Request(RequestSpec(str(uuid.uuid4()), "project", flavor.resources, flavor, group=group))
    if members is not None:
        made.members = members
    return made


@pytest.mark.parametrize("count", [3, 1000])
def test_equal_requests_are_spread_over_empty_hosts(count: int) -> None:
    world = World([Resources()] * count)

    rows = Counter(world.choose(request()) for _number in range(min(count, 64)))

    assert None not in rows and set(rows.values()) == {1}


def test_a_choice_is_never_much_worse_than_the_best_of_all_hosts() -> None:
    dice = random.Random(7)
    world = World([Resources(n := dice.randrange(8), 1024 * n, n) for _number in range(2000)])

    for _number in range(400):
        wanted = request(dice.choice([1, 1, 2, 4]))
        before = world.view.booked.copy(), world.view.building.copy()
        row = world.choose(wanted)
        after = world.view.booked, world.view.building
        world.view.booked, world.view.building = before
        assert row is not None and world.lag(row, wanted) <= 2 * world.near_equal
        world.view.booked, world.view.building = after


@pytest.mark.parametrize("count", [5, SHORTLIST + 50])
def test_every_place_is_found_and_no_more(count: int) -> None:
    world = World([Resources(6, 0, 0)] * count)

    rows = Counter(world.choose(request()) for _number in range(2 * count + 3))

    assert rows.pop(None) == 3
    assert set(rows.values()) == {2} and len(rows) == count


@pytest.mark.parametrize("count", [4, SHORTLIST + 50])
def test_members_of_an_anti_affinity_group_are_kept_apart(count: int) -> None:
    world = World([Resources()] * count)
    group, members = Group(1, str(uuid.uuid4()), ANTI_AFFINITY), Counter[int]()

    rows = Counter(world.choose(request(group=group, members=members)) for _number in range(count + 2))

    assert rows.pop(None) == 2
    assert set(rows.values()) == {1} and len(rows) == count


def test_members_of_a_soft_anti_affinity_group_are_spread_first() -> None:
    world = World([Resources()] * 4)
    group, members = Group(1, str(uuid.uuid4()), SOFT_ANTI_AFFINITY), Counter[int]()

    rows = Counter(world.choose(request(group=group, members=members)) for _number in range(8))

    assert set(rows.values()) == {2} and len(rows) == 4


def test_a_visited_host_is_not_chosen_again_and_is_left_to_others() -> None:
    world = World([Resources(7, 0, 0), Resources(8, 0, 0)])
    loser = request()
    loser.visited.add(1)

    assert world.choose(loser) is None
    assert world.choose(request()) == 0
    assert world.choose(request()) is None

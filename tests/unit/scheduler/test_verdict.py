# SPDX-License-Identifier: Apache-2.0
"""The verdict, as the pure function that it is: what it must say of given books, and what must hold of any."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from nova_lite.objects.group import AFFINITY, ANTI_AFFINITY
from nova_lite.objects.ledger import Grant, GroupBooks, Ledger, Mover, NodeBooks
from nova_lite.objects.resources import Resources
from nova_lite.scheduler.verdict import Verdict, holding


def size(vcpus: int) -> Resources:
    return Resources(vcpus, 0, 0)


def books(capacities: list[int], grants: list[Grant], groups: list[GroupBooks] | None = None) -> Ledger:
    nodes = {i: NodeBooks(i, size(capacity), size(0)) for i, capacity in enumerate(capacities)}
    return Ledger(nodes, {group.id: group for group in groups or []}, tuple(grants))


def grant(number: int, node: int, vcpus: int = 1, group: int | None = None) -> Grant:
    """Make a grant whose tickets, on its node and in its group, are its number."""
    return Grant(number, f"c{number}", "", node, number, size(vcpus), group, number if group is not None else None)


def test_a_loser_does_not_push_out_a_later_request_that_fits() -> None:
    # Summing the earlier grants would turn the third away, for the sake of the second that lost.
    grants = [grant(1, 0), grant(2, 0, vcpus=2), grant(3, 0)]
    assert holding(books([2], grants), grants) == {1, 3}


def test_anti_affinity_lets_the_first_on_each_node_hold() -> None:
    group = GroupBooks(7, ANTI_AFFINITY, 1)
    grants = [grant(1, 0, group=7), grant(2, 0, group=7), grant(3, 1, group=7)]
    assert holding(books([9, 9], grants, [group]), grants) == {1, 3}


def test_anti_affinity_counts_allocated_members() -> None:
    group = GroupBooks(7, ANTI_AFFINITY, 2, {0: 1})
    grants = [grant(1, 0, group=7), grant(2, 0, group=7)]
    assert holding(books([9], grants, [group]), grants) == {1}


def test_affinity_is_at_home_where_its_first_grant_holds() -> None:
    group = GroupBooks(7, AFFINITY, 1)
    # The group's first grant finds its node full, so the second decides.
    grants = [grant(1, 0, vcpus=3, group=7), grant(2, 1, group=7), grant(3, 0, group=7), grant(4, 1, group=7)]
    assert holding(books([2, 2], grants, [group]), grants) == {2, 4}


def test_an_affinity_grant_away_from_home_takes_no_room() -> None:
    group = GroupBooks(7, AFFINITY, 1)
    grants = [grant(1, 0, group=7), grant(2, 1, group=7), grant(3, 1)]
    verdict = Verdict(books([1, 1], grants, [group]))
    assert [verdict.holds(each) for each in grants] == [True, False, True]
    assert verdict.home(group) == {0}
    assert verdict.booked(1) == size(1)


def test_a_member_that_moves_is_not_in_its_own_way() -> None:
    apart = GroupBooks(7, ANTI_AFFINITY, 1, {0: 1}, {"c1": Mover(frozenset({0}))})
    together = GroupBooks(8, AFFINITY, 1, {0: 1}, {"c2": Mover(frozenset({0}))})
    grants = [grant(1, 0, group=7), grant(2, 1, group=8)]
    assert holding(books([9, 9], grants, [apart, together]), grants) == {1, 2}


def test_nobody_joins_an_affinity_group_whose_member_is_between_two_nodes() -> None:
    group = GroupBooks(7, AFFINITY, 1, {0: 1, 1: 1})
    grants = [grant(1, 0, group=7), grant(2, 1, group=7)]
    assert holding(books([9, 9], grants, [group]), grants) == set()


def test_of_two_members_that_move_to_one_node_the_first_holds() -> None:
    movers = {"c1": Mover(frozenset({0})), "c2": Mover(frozenset({1}))}
    group = GroupBooks(7, ANTI_AFFINITY, 1, {0: 1, 1: 1}, movers)
    grants = [grant(1, 2, group=7), grant(2, 2, group=7)]
    assert holding(books([9, 9, 9], grants, [group]), grants) == {1}


def test_members_on_a_dead_node_keep_nobody_from_leaving_it() -> None:
    movers = {"c1": Mover(frozenset({0}), abandons=0), "c2": Mover(frozenset({0}), abandons=0)}
    group = GroupBooks(7, AFFINITY, 1, {0: 2}, movers)
    grants = [grant(1, 1, group=7), grant(2, 2, group=7)]
    assert holding(books([9, 9, 9], grants, [group]), grants) == {1}


def test_affinity_follows_its_allocated_members() -> None:
    group = GroupBooks(7, AFFINITY, 1, {1: 2})
    grants = [grant(1, 0, group=7), grant(2, 1, group=7)]
    assert holding(books([9, 9], grants, [group]), grants) == {2}


def test_a_grant_on_a_node_that_is_gone_does_not_hold() -> None:
    grants = [grant(1, 5)]
    assert holding(books([9], grants), grants) == set()


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    """Any books: nodes with room or without, groups with members or without, and grants in any state."""
    count = draw(st.integers(1, 4))
    nodes = {}
    for node in range(count):
        amounts = st.builds(Resources, st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
        nodes[node] = NodeBooks(node, draw(amounts), draw(amounts))
    groups = {}
    for group in range(draw(st.integers(0, 3))):
        policy = draw(st.sampled_from((AFFINITY, ANTI_AFFINITY)))
        members = draw(st.dictionaries(st.integers(0, count - 1), st.integers(1, 2), max_size=2))
        groups[group] = GroupBooks(group, policy, draw(st.integers(1, 2)), members)
    grants = []
    for number in range(draw(st.integers(0, 12))):
        group_id = draw(st.sampled_from([None, *groups])) if groups else None
        amounts = Resources(*(draw(st.integers(0, 3)) for _ in range(3)))
        ticket = group_ticket = number + 1
        grants.append(
            Grant(
                number,
                f"c{number}",
                "",
                draw(st.integers(0, count - 1)),
                ticket,
                amounts,
                group_id,
                group_ticket if group_id is not None else None,
            )
        )
    return Ledger(nodes, groups, tuple(grants))


@given(ledgers(), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_everybody_agrees_whatever_they_ask_first(ledger: Ledger, order: random.Random) -> None:
    asked_in_order = {grant.id: Verdict(ledger).holds(grant) for grant in ledger.grants}
    shuffled = list(ledger.grants)
    order.shuffle(shuffled)
    other = Verdict(Ledger(ledger.nodes, ledger.groups, tuple(shuffled)))
    assert {grant.id: other.holds(grant) for grant in shuffled} == asked_in_order


@given(ledgers())
@settings(max_examples=300, deadline=None)
def test_winners_never_exceed_capacity(ledger: Ledger) -> None:
    verdict = Verdict(ledger)
    for node in ledger.nodes.values():
        if verdict.held(node.id):
            assert verdict.booked(node.id).fits(node.capacity)


@given(ledgers())
@settings(max_examples=300, deadline=None)
def test_winners_keep_their_groups_rules(ledger: Ledger) -> None:
    won = holding(ledger, ledger.grants)
    for group in ledger.groups.values():
        placed = Counter(g.node_id for g in ledger.grants if g.id in won and g.group_id == group.id)
        if group.policy == ANTI_AFFINITY:
            for node, count in placed.items():
                assert count + group.members.get(node, 0) <= group.max_server_per_host
        elif group.members:
            assert placed.keys() <= group.members.keys()
        else:
            assert len(placed) <= 1


@given(ledgers())
@settings(max_examples=300, deadline=None)
def test_no_loser_would_have_fitted_beside_those_before_it(ledger: Ledger) -> None:
    verdict = Verdict(ledger)
    for grant in ledger.grants:
        if verdict.holds(grant):
            continue
        node = ledger.nodes[grant.node_id]
        before = [g for g in ledger.grants if g.ticket < grant.ticket and verdict.holds(g)]
        booked = node.used
        for each in before:
            if each.node_id == grant.node_id:
                booked += each.amounts
        fits = (booked + grant.amounts).fits(node.capacity)
        assert not (fits and _rule_kept(ledger, grant, before))


def _rule_kept(ledger: Ledger, grant: Grant, before: list[Grant]) -> bool:
    group = ledger.groups.get(grant.group_id) if grant.group_id is not None else None
    if group is None:
        return True
    mine = [g.node_id for g in before if g.group_id == group.id]
    if group.policy == ANTI_AFFINITY:
        return mine.count(grant.node_id) + group.members.get(grant.node_id, 0) < group.max_server_per_host
    home = {node_id for node_id, count in group.members.items() if count} or set(mine)
    return not home or home == {grant.node_id}

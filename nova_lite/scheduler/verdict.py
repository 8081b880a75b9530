# SPDX-License-Identifier: Apache-2.0
"""The verdict: which grants hold. A pure function of a ledger, with no I/O and no clock.

Naively, a grant would lose if all the grants before it, summed up, leave too little room. But some of those have lost
themselves and only wait to be removed; summing them turns away a request that fits. So the grants are replayed: in
the order of their tickets, each holds if its amounts fit beside the allocations and the grants that hold before it,
and if its group's rule is kept. Whoever replays the same rows reaches the same verdict, so nobody has to be asked.

The rules of groups. Anti-affinity is a matter of one node: the members there, allocated or held before it, must be
fewer than max_server_per_host. Affinity is a matter of the group: its home is where its members are allocated or,
before there are any, the node of the first of its grants that holds; a grant elsewhere does not hold. While a member
has two allocations, since it moves, no place is sure to be beside it, and nobody joins. A member that moves is not in
its own way. Tickets of
nodes and groups are handed out in one transaction under all of their locks, so the two orders never contradict each
other, and the replay may follow a group to other nodes and always arrives at earlier grants.

What a verdict is worth when an earlier grant disappears without being consumed (its owner died and it expired): a
later grant that had lost may now be found to hold beside one that had won, where both do not fit. Neither is booked
yet; the check at consume, under the locks, lets one in and sends the other back to be scheduled again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from nova_lite.objects.group import AFFINITY, ANTI_AFFINITY
from nova_lite.objects.ledger import Grant, GroupBooks, Ledger
from nova_lite.objects.resources import Resources


class Verdict:
    """A replay of a ledger, as far as it was asked for."""

    def __init__(self, ledger: Ledger) -> None:
        self._nodes = ledger.nodes
        self._groups = ledger.groups
        self._by_node: dict[int, list[Grant]] = defaultdict(list)
        self._by_group: dict[int, list[Grant]] = defaultdict(list)
        for grant in ledger.grants:
            self._by_node[grant.node_id].append(grant)
            if self._policy(grant) == AFFINITY:
                self._by_group[grant.group_id or 0].append(grant)
        for grants in self._by_node.values():
            grants.sort(key=lambda grant: grant.ticket)
        for grants in self._by_group.values():
            grants.sort(key=lambda grant: grant.group_ticket or 0)
        self._position: dict[int, int] = defaultdict(int)
        self._booked = {node.id: node.used for node in ledger.nodes.values()}
        self._members: dict[tuple[int, int], int] = {
            (group.id, node_id): count for group in ledger.groups.values() for node_id, count in group.members.items()
        }
        self._holds: dict[int, bool] = {}

    def holds(self, grant: Grant) -> bool:
        """Tell whether the grant holds."""
        if grant.id not in self._holds:
            self._replay(grant.node_id, grant.ticket)
        return self._holds[grant.id]

    def booked(self, node_id: int) -> Resources:
        """Return what is taken of a node: its allocations and the grants that hold."""
        self._replay(node_id)
        return self._booked[node_id]

    def held(self, node_id: int) -> list[Grant]:
        """Return the node's grants that hold."""
        self._replay(node_id)
        return [grant for grant in self._by_node[node_id] if self._holds[grant.id]]

    def members(self, group_id: int, node_id: int) -> int:
        """Return how many members of the group the node has or is about to have."""
        self._replay(node_id)
        return self._members.get((group_id, node_id), 0)

    def home(self, group: GroupBooks) -> frozenset[int]:
        """Return the nodes that an affinity group is at home on; none as long as it has no member."""
        return group.nodes_of_others("") or self._first_held(group, "", None)

    def _replay(self, node_id: int, up_to: int | None = None) -> None:
        grants = self._by_node[node_id]
        while self._position[node_id] < len(grants):
            grant = grants[self._position[node_id]]
            if up_to is not None and grant.ticket > up_to:
                return
            # Following the group first may replay this very node; then the position has moved on.
            kept = self._group_rule_is_kept(grant)
            if grant.id in self._holds:
                continue
            self._position[node_id] += 1
            self._holds[grant.id] = kept and self._book(grant)

    def _book(self, grant: Grant) -> bool:
        node = self._nodes.get(grant.node_id)
        if node is None:
            return False
        booked = self._booked[grant.node_id] + grant.amounts
        if not booked.fits(node.capacity):
            return False
        self._booked[grant.node_id] = booked
        if grant.group_id is not None:
            key = (grant.group_id, grant.node_id)
            self._members[key] = self._members.get(key, 0) + 1
        return True

    def _group_rule_is_kept(self, grant: Grant) -> bool:
        policy = self._policy(grant)
        if policy == ANTI_AFFINITY:
            group = self._groups[grant.group_id or 0]
            members = self._members.get((group.id, grant.node_id), 0) - group.set_aside(grant.consumer, grant.node_id)
            return members < group.max_server_per_host
        if policy == AFFINITY:
            group = self._groups[grant.group_id or 0]
            home = group.nodes_of_others(grant.consumer) or self._first_held(group, grant.consumer, grant.group_ticket)
            return not home or home == {grant.node_id}
        return True

    def _first_held(self, group: GroupBooks, consumer: str, before: int | None) -> frozenset[int]:
        """Return the node of the first of the group's grants that holds, of others than the consumer."""
        for grant in self._by_group[group.id]:
            if before is not None and (grant.group_ticket or 0) >= before:
                break
            if grant.consumer != consumer and self.holds(grant):
                return frozenset((grant.node_id,))
        return frozenset()

    def _policy(self, grant: Grant) -> str | None:
        group = self._groups.get(grant.group_id) if grant.group_id is not None else None
        return group.policy if group else None


def holding(ledger: Ledger, grants: Iterable[Grant]) -> set[int]:
    """Return the ids of those of the grants that hold in the ledger."""
    verdict = Verdict(ledger)
    return {grant.id for grant in grants if verdict.holds(grant)}

# SPDX-License-Identifier: Apache-2.0
"""The books as one snapshot shows them: nodes, groups, and the grants that wait to be consumed."""

from __future__ import annotations

from dataclasses import dataclass, field

from nova_lite.objects.resources import Resources


@dataclass(frozen=True, slots=True)
class NodeBooks:
    """capacity is what may be booked (total x ratio - reserved), used the sum of the node's allocations."""

    id: int
    capacity: Resources
    used: Resources


@dataclass(frozen=True, slots=True)
class Mover:
    """A member that moves.

    nodes are those on which it is allocated; abandons is a dead one that it is evacuated from.
    """

    nodes: frozenset[int]
    abandons: int | None = None


@dataclass(frozen=True, slots=True)
class GroupBooks:
    """members counts the group's allocations by node id, movers are those members that have a grant for a move."""

    id: int
    policy: str
    max_server_per_host: int
    members: dict[int, int] = field(default_factory=dict)
    movers: dict[str, Mover] = field(default_factory=dict)

    def set_aside(self, consumer: str, node_id: int) -> int:
        """Return how many of the members on the node do not count against a grant of the consumer's.

        A member is not in its own way, and those on a dead host keep nobody from leaving it.
        """
        mover = self.movers.get(consumer)
        if mover is None:
            return 0
        return self.members.get(node_id, 0) if node_id == mover.abandons else int(node_id in mover.nodes)

    def nodes_of_others(self, consumer: str) -> frozenset[int]:
        """Return the nodes with members that count for a grant of the consumer's."""
        return frozenset(
            node_id for node_id, count in self.members.items() if count > self.set_aside(consumer, node_id)
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """A live grant. ticket orders it on its node, group_ticket in its group; both were given under the rows' locks."""

    id: int
    consumer: str
    migration: str
    node_id: int
    ticket: int
    amounts: Resources
    group_id: int | None = None
    group_ticket: int | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Nodes, groups and grants of one snapshot.

    Complete for judging any grant in it: all live grants of each node are there and, for each grant of an affinity
    group, all of that group's grants and their nodes.
    """

    nodes: dict[int, NodeBooks]
    groups: dict[int, GroupBooks]
    grants: tuple[Grant, ...]

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
class GroupBooks:
    """members counts the group's allocations by node id."""

    id: int
    policy: str
    max_server_per_host: int
    members: dict[int, int] = field(default_factory=dict)


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

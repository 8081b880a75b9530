# SPDX-License-Identifier: Apache-2.0
"""A request on its way through the placer: what was asked, and what was learnt of it so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from nova_lite.objects.ledger import Mover
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.scheduler.view import Amounts, amounts


@dataclass(slots=True)
class Request:
    """One spec, with its state.

    members counts the members of the request's group by node id as far as is known, and is shared by all of the
    batch's requests of that group; mover tells which of them a move is not hindered by. same_hosts and different_hosts
    are the hosts of the instances that these hints name, None without the hint. visited are the node ids on which a
    grant of this request was lost.
    """

    spec: RequestSpec
    amounts: Amounts = field(init=False)
    members: Counter[int] = field(default_factory=Counter)
    mover: Mover | None = None
    same_hosts: frozenset[str] | None = None
    different_hosts: frozenset[str] | None = None
    visited: set[int] = field(default_factory=set)
    fall_overs: int = 0

    def __post_init__(self) -> None:
        self.amounts = amounts(self.spec.resources)

    def others(self) -> Counter[int]:
        """Count the members by node id that the request has to mind."""
        if self.mover is None:
            return self.members
        left = self.members - Counter(self.mover.nodes)
        left.pop(self.mover.abandons or 0, None)
        return left

    @property
    def group_id(self) -> int | None:
        return self.spec.group.id if self.spec.group else None

    def traits(self) -> tuple[object, ...]:
        """Return what the filters that do not depend on usage look at: equal traits, equal answer."""
        spec = self.spec
        return (
            spec.resources,
            spec.availability_zone,
            spec.requested_host,
            spec.requested_node,
            spec.excluded_hosts,
            tuple(sorted(spec.flavor.extra_specs.items())),
            tuple(sorted(spec.image_properties.items())),
            self.same_hosts,
            self.different_hosts,
        )

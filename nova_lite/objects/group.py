# SPDX-License-Identifier: Apache-2.0
"""A server group as the scheduler needs it: its policy and its rule."""

from __future__ import annotations

from dataclasses import dataclass

AFFINITY = "affinity"
ANTI_AFFINITY = "anti-affinity"
SOFT_AFFINITY = "soft-affinity"
SOFT_ANTI_AFFINITY = "soft-anti-affinity"
POLICIES = (AFFINITY, ANTI_AFFINITY, SOFT_AFFINITY, SOFT_ANTI_AFFINITY)


@dataclass(frozen=True, slots=True)
class Group:
    """id is the row's id; max_server_per_host matters to anti-affinity alone."""

    id: int
    uuid: str
    policy: str
    max_server_per_host: int = 1

    @property
    def is_required(self) -> bool:
        """Tell whether breaking the policy is forbidden rather than disliked."""
        return self.policy in (AFFINITY, ANTI_AFFINITY)

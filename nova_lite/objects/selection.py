# SPDX-License-Identifier: Apache-2.0
"""What the scheduler answers: a grant, or the reasons why there is none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """The answer to one RequestSpec.

    With a grant, grant_id, node_id, host, node (the hypervisor's host name) and server (the name of the RPC server
    that drives the host) are set. Without, reason says what each filter and rule turned away; or superseded says that
    the consumer was scheduled again in the meantime, and that newer answer counts; or nothing was decided in time, and
    the request is to be made again. fall_overs counts the grants that were written and lost on the way.
    """

    consumer: str
    grant_id: int | None = None
    node_id: int | None = None
    host: str | None = None
    node: str | None = None
    server: str | None = None
    fall_overs: int = 0
    reason: str | None = None
    superseded: bool = False

    @property
    def is_undecided(self) -> bool:
        return self.grant_id is None and self.reason is None and not self.superseded

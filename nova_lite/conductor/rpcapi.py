# SPDX-License-Identifier: Apache-2.0
"""The client of the conductor: what api and compute ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nova_lite import rpc
from nova_lite.context import RequestContext
from nova_lite.objects.action import ActionOutcome
from nova_lite.objects.build import BuildOutcome, Claim, ClaimOutcome
from nova_lite.objects.instance import DomainInfo
from nova_lite.objects.move import MoveOutcome, Progress
from nova_lite.objects.node import NodeInventory, NodeRecord

# A conductor that is there registers a thousand nodes within this time.
REGISTER_TIMEOUT = 5.0


class ConductorAPI:
    """Casts are hints (the rows are the truth); calls raise rpc.Timeout."""

    def __init__(self, timeout: float = 30.0) -> None:
        self._client = rpc.client(rpc.CONDUCTOR, timeout)

    def run(self, context: RequestContext, operations: Sequence[str]) -> None:
        """Hint that these operations (uuids) wait to be worked on."""
        self._client.cast(context, "run", operations=list(operations))

    def register(
        self, context: RequestContext, server: str, nodes: Sequence[NodeInventory], starting: bool
    ) -> list[NodeRecord]:
        """Report the nodes that a compute process serves; makes their rows or brings them up to date.

        :param starting: whether the process has just started, and so works on nothing that it was given before.
        Patient for seconds only: a compute often starts before any conductor does, and asks again.

        :raises Conflict: a node's identity does not match the one on record.
        """
        client = self._client.prepare(timeout=REGISTER_TIMEOUT)
        return client.call(context, "register", server=server, nodes=list(nodes), starting=starting)

    def heartbeat(self, context: RequestContext, hosts: Sequence[str], server: str, operations: Sequence[str]) -> None:
        """Say that the hosts' compute service is alive, and renew the leases of the operations that it works on."""
        self._client.call(context, "heartbeat", hosts=list(hosts), server=server, operations=list(operations))

    def consume_grants(self, context: RequestContext, claims: Sequence[Claim]) -> list[ClaimOutcome]:
        """Turn grants into allocations; the caller holds the claim locks of their nodes."""
        return self._client.call(context, "consume_grants", claims=list(claims))

    def finish_builds(self, context: RequestContext, outcomes: Sequence[BuildOutcome]) -> None:
        """Report how builds ended."""
        self._client.call(context, "finish_builds", outcomes=list(outcomes))

    def wanted(self, context: RequestContext, operations: Sequence[str]) -> list[str]:
        """Ask which of the operations are still to be done."""
        return self._client.call(context, "wanted", uuids=list(operations))

    def finish_actions(self, context: RequestContext, outcomes: Sequence[ActionOutcome]) -> None:
        """Report how actions ended."""
        self._client.call(context, "finish_actions", outcomes=list(outcomes))

    def note_progress(self, context: RequestContext, operation: str, task_state: str, saving: bool) -> None:
        """Report what is done now in an operation.

        :param saving: whether the content of the operation's image is on its way.
        """
        self._client.call(context, "note_progress", operation=operation, task_state=task_state, saving=saving)

    def report_power_state(self, context: RequestContext, host: str, domain: DomainInfo) -> None:
        """Report what the hypervisor shows of a server, outside of any action."""
        self._client.call(context, "report_power_state", host=host, domain=domain)

    def report_domains(
        self,
        context: RequestContext,
        hosts: Sequence[str],
        domains: Sequence[DomainInfo],
        remains: Sequence[DomainInfo],
    ) -> list[dict[str, Any]]:
        """Report all domains of the hosts, and what is there of servers without a domain.

        The answer lists those about which there is something to do, each with uuid, host and finding: "deleted" or
        "moved" (there is proof of it in the books: remove it) or "differs" (look again).
        """
        client = self._client
        return client.call(context, "report_domains", hosts=list(hosts), domains=list(domains), remains=list(remains))

    def begin_step(self, context: RequestContext, operation: str, step: str, server: str) -> bool:
        """Ask whether a step of a move is still to be done; if so, the server holds the operation."""
        return self._client.call(context, "begin_step", operation=operation, step=step, server=server)

    def finish_steps(self, context: RequestContext, outcomes: Sequence[MoveOutcome]) -> None:
        """Report how steps of moves ended."""
        self._client.call(context, "finish_steps", outcomes=list(outcomes))

    def live_migration_progress(
        self, context: RequestContext, migration: str, operation: str, progress: Progress
    ) -> str:
        """Report how far a live migration is; the answer is what is wished of it."""
        return self._client.call(
            context, "live_migration_progress", migration=migration, operation=operation, progress=progress
        )

    def may_remove(self, context: RequestContext, uuid: str, host: str) -> dict[str, Any] | None:
        """Ask for proof that what a server has left on the host may be removed: shared and migration, or None."""
        return self._client.call(context, "may_remove", uuid=uuid, host=host)

    def removed(self, context: RequestContext, migration: str) -> None:
        """Report that what a move left on its source is gone."""
        self._client.call(context, "removed", migration=migration)

    def vacated(self, context: RequestContext, uuid: str, host: str) -> None:
        """Report that nothing of a deleted server is on the host, so that nobody there uses its address."""
        self._client.call(context, "vacated", uuid=uuid, host=host)

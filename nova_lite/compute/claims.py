# SPDX-License-Identifier: Apache-2.0
"""The claim locks: a node's grants are consumed by one thread at a time, in the process that owns the node.

The database's row lock already makes consuming exact. The claim lock keeps this process' own builds from queueing up
in the database for the row that they all need, and makes one transaction of all that wait.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from oslo_log import log

from nova_lite import rpc
from nova_lite.conductor.rpcapi import ConductorAPI
from nova_lite.context import service_context
from nova_lite.objects.build import BuildRequest, Claim, ClaimOutcome

LOG = log.getLogger(__name__)


class Claims:
    """Consumes grants through the conductor, under the locks of their nodes."""

    def __init__(self, conductor: ConductorAPI, server: str) -> None:
        self._conductor = conductor
        #: The RPC server that works on what was claimed.
        self.server = server
        self._locks: dict[int, threading.Lock] = defaultdict(threading.Lock)

    def consume(self, requests: Sequence[BuildRequest]) -> list[ClaimOutcome]:
        """Turn the grants of builds into allocations; outcomes come in the order of the requests."""
        return self.turn([Claim(r.operation, r.instance.uuid, r.grant_id, r.node_id, self.server) for r in requests])

    def turn(self, claims: Sequence[Claim]) -> list[ClaimOutcome]:
        """Turn grants into allocations; outcomes come in the order of the claims.

        A conductor that does not answer may have done it all the same; asking again finds the allocation there. If
        none answers at all, every claim counts as refused, and the operation's lease brings it back.
        """
        with self._locked(claims):
            try:
                found = {o.operation: o for o in self._conductor.consume_grants(service_context(), claims)}
            except rpc.Error as error:
                LOG.warning("no conductor answered claims=%d reason=%s", len(claims), error)
                found = {}
        refused = [ClaimOutcome(c.operation, c.consumer, False, "no conductor answered") for c in claims]
        return [found.get(claim.operation, refusal) for claim, refusal in zip(claims, refused, strict=True)]

    @contextmanager
    def _locked(self, claims: Sequence[Claim]) -> Iterator[None]:
        with ExitStack() as stack:
            for node_id in sorted({claim.node_id for claim in claims}):
                stack.enter_context(self._locks[node_id])
            yield

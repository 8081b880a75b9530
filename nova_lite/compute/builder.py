# SPDX-License-Identifier: Apache-2.0
"""Builds on this host: claim, then image, network, config drive, domain; then the outcome to the conductor.

Claims that wait are consumed together, outcomes that wait are reported together; in between, builds run side by side
up to max_concurrent_builds. A build that is asked for twice runs once. Nothing is remembered on disk: what a process
that dies leaves undone, its operation's lease brings back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from oslo_config import cfg
from oslo_log import log

from nova_lite import exception
from nova_lite.batching import Batcher, answering_nothing
from nova_lite.compute.claims import Claims
from nova_lite.compute.instance_locks import InstanceLocks
from nova_lite.compute.spawner import Spawner
from nova_lite.compute.work import Work
from nova_lite.context import continuing
from nova_lite.objects.build import BuildOutcome, BuildRequest, ClaimOutcome
from nova_lite.virt.driver import Driver

LOG = log.getLogger(__name__)


class Builder:
    """Runs the builds of one compute process."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        driver: Driver,
        spawner: Spawner,
        locks: InstanceLocks,
        work: Work,
        claims: Claims,
        report: Callable[[Sequence[BuildOutcome]], None],
    ) -> None:
        self._driver = driver
        self._spawner = spawner
        self._locks = locks
        self._work = work
        self._claims: Batcher[BuildRequest, ClaimOutcome] = Batcher("claims", claims.consume, 100, threads=2)
        self._outcomes: Batcher[BuildOutcome, None] = Batcher("outcomes", answering_nothing(report), 100, threads=2)
        self._pool = ThreadPoolExecutor(conf.compute.max_concurrent_builds, thread_name_prefix="build")

    def build(self, requests: Sequence[BuildRequest]) -> None:
        """Accept builds; those that are already being worked on are left alone."""
        fresh = [request for request in requests if self._work.begin(request.operation)]
        for request, claimed in zip(fresh, self._claims.submit(fresh), strict=True):
            claimed.add_done_callback(partial(self._claimed, request))

    def stop(self) -> None:
        """Finish what has been accepted."""
        self._claims.stop()
        self._pool.shutdown(wait=True)
        self._outcomes.stop()

    def _claimed(self, request: BuildRequest, claimed: Future[ClaimOutcome]) -> None:
        error = claimed.exception()
        if error is not None or not claimed.result().granted:
            reason = error if error is not None else claimed.result().reason
            with continuing(request.request_id):
                LOG.info("claim refused instance=%s reason=%s", request.instance.uuid, reason)
            self._work.end(request.operation)
            return
        self._pool.submit(self._build, request)

    def _build(self, request: BuildRequest) -> None:
        instance = request.instance
        with continuing(request.request_id), self._locks.holding(instance.uuid):
            outcome = self._attempt(request)
        # Ended before it is reported: a failed build may come back at once, for another host of this very process.
        self._work.end(request.operation)
        self._outcomes.submit([outcome])

    def _attempt(self, request: BuildRequest) -> BuildOutcome:
        instance = request.instance
        if self._work.is_doomed(instance.uuid):
            return self._failed(request, "The server was deleted while it was built.", retriable=False)
        try:
            addresses = self._spawner.spawn(instance)
            state = self._driver.power_state(instance)
        except exception.ImageUnacceptable as error:
            return self._failed(request, str(error), retriable=False)
        except exception.NovaLiteError as error:
            return self._failed(request, str(error))
        except Exception:
            LOG.exception("build failed unexpectedly instance=%s", instance.uuid)
            return self._failed(request, "an unexpected error happened on the host; its log has the details")
        return BuildOutcome(
            request.operation, instance.uuid, instance.host, True, power_state=state, addresses=addresses
        )

    def _failed(self, request: BuildRequest, reason: str, retriable: bool = True) -> BuildOutcome:
        LOG.warning("build failed instance=%s host=%s reason=%s", request.instance.uuid, request.instance.host, reason)
        return BuildOutcome(
            request.operation,
            request.instance.uuid,
            request.instance.host,
            False,
            reason=reason,
            retriable=retriable,
        )

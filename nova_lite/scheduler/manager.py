# SPDX-License-Identifier: Apache-2.0
"""The scheduler process: serves calls from the bus, keeps its heartbeat, and reaps expired grants."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from oslo_config import cfg
from oslo_log import log

from nova_lite import metrics, rpc
from nova_lite.batching import Batcher
from nova_lite.context import RequestContext
from nova_lite.db import grants, registry
from nova_lite.db.session import Database
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.selection import Selection
from nova_lite.scheduler.placer import Placer
from nova_lite.service import Heartbeat, Periodic, Service

LOG = log.getLogger(__name__)


# Of the time that a caller waits: how much passes until nothing more is begun for it, and how much more what has been
# begun may take. The rest is for the way back.
_SHARE_TO_BEGIN, _SHARE_TO_END = 0.7, 0.15


@dataclass(slots=True)
class _Call:
    """Somebody who waits for answers, until it is over."""

    over: bool = False


class _Waiting(NamedTuple):
    """A request in the queue, and the call that it came with."""

    spec: RequestSpec
    call: _Call


class Endpoint:
    """What the bus may call."""

    target = rpc.endpoint_target

    def __init__(self, placer: Placer, batch: int) -> None:
        self._placer = placer
        self._queue: Batcher[_Waiting, Selection] = Batcher("placer", self._place, batch)

    def stop(self) -> None:
        self._queue.stop()

    @rpc.expose
    def select_destinations(
        self, context: RequestContext, specs: list[RequestSpec], patience: float
    ) -> list[Selection]:
        """Answer each spec with a grant that holds, with the reasons why there is none, or undecided.

        Naively, a scheduler would work off all that it was ever asked. Under more load than it can bear, callers then
        give up and ask again, it still grants what nobody waits for, and no call ends in time any more (Launchpad
        1795992). So before the caller's patience ends it is told what is decided, and the rest leaves the queue: each
        call gets somewhere, and nothing that waits here is older than a call's patience.

        :param patience: seconds for which the caller waits.
        """
        call = _Call()
        futures = self._queue.submit([_Waiting(spec, call) for spec in specs])
        concurrent.futures.wait(futures, patience * _SHARE_TO_BEGIN)
        call.over = True
        concurrent.futures.wait(futures, patience * _SHARE_TO_END)
        return [
            future.result() if future.done() else Selection(spec.consumer)
            for spec, future in zip(specs, futures, strict=True)
        ]

    def _place(self, batch: Sequence[_Waiting]) -> list[Selection]:
        """Place those that somebody still waits for; the others are nobody's any more."""
        answers = {place: Selection(waiting.spec.consumer) for place, waiting in enumerate(batch) if waiting.call.over}
        wanted = [place for place in range(len(batch)) if place not in answers]
        if wanted:
            placed = self._placer.place([batch[place].spec for place in wanted])
            answers.update(zip(wanted, placed, strict=True))
        return [answers[place] for place in range(len(batch))]


class SchedulerService(Service):
    """One scheduler; any number may run."""

    name = "scheduler"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def start(self) -> None:
        self._db = Database(self._conf)
        rpc.start(self._conf)
        self._endpoint = Endpoint(Placer(self._conf, self._db), self._conf.scheduler.batch)
        self._heartbeat = Heartbeat(self._conf, self._db, registry.SCHEDULER)
        self._reaper = Periodic("reaper", self._conf.scheduler.reap_interval, self._reap)
        self._server = rpc.serve(rpc.SCHEDULER, self._conf.host, self._endpoint, self._conf.rpc_workers)

    def stop(self) -> None:
        self._server.stop()
        self._server.wait()
        self._endpoint.stop()
        self._reaper.stop()
        self._heartbeat.stop()
        self._db.close()

    def _reap(self) -> None:
        expired: dict[int, int] = dict(self._db.write(grants.expire))
        if expired:
            metrics.EXPIRED_GRANTS.inc(sum(expired.values()))
            LOG.info("grants expired count=%d nodes=%s", sum(expired.values()), sorted(expired))

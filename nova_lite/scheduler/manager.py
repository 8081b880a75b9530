# SPDX-License-Identifier: Apache-2.0
"""The scheduler process: serves calls from the bus, keeps its heartbeat, and reaps expired grants."""

from __future__ import annotations

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


class Endpoint:
    """What the bus may call."""

    target = rpc.endpoint_target

    def __init__(self, placer: Batcher[RequestSpec, Selection]) -> None:
        self._placer = placer

    @rpc.expose
    def select_destinations(self, context: RequestContext, specs: list[RequestSpec]) -> list[Selection]:
        """Answer each spec with a grant that holds, or with the reasons why there is none."""
        return [future.result() for future in self._placer.submit(specs)]


class SchedulerService(Service):
    """One scheduler; any number may run."""

    name = "scheduler"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def start(self) -> None:
        self._db = Database(self._conf)
        rpc.start(self._conf)
        self._batcher: Batcher[RequestSpec, Selection] = Batcher(
            "placer", Placer(self._conf, self._db).place, self._conf.scheduler.batch
        )
        self._heartbeat = Heartbeat(self._conf, self._db, registry.SCHEDULER)
        self._reaper = Periodic("reaper", self._conf.scheduler.reap_interval, self._reap)
        self._server = rpc.serve(rpc.SCHEDULER, self._conf.host, Endpoint(self._batcher), self._conf.rpc_workers)

    def stop(self) -> None:
        self._server.stop()
        self._server.wait()
        self._batcher.stop()
        self._reaper.stop()
        self._heartbeat.stop()
        self._db.close()

    def _reap(self) -> None:
        expired: dict[int, int] = dict(self._db.write(grants.expire))
        if expired:
            metrics.EXPIRED_GRANTS.inc(sum(expired.values()))
            LOG.info("grants expired count=%d nodes=%s", sum(expired.values()), sorted(expired))

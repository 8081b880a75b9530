# SPDX-License-Identifier: Apache-2.0
"""Steps of moves on this host, as source or destination; see objects/move.py.

A step that begins with a claim consumes its grant first; any other asks the conductor whether it is still to be done.
So a message that comes twice, or after the move has ended, does nothing. A live migration may take long: it has threads
of its own, as many as may run at once, and while it runs it asks the conductor what is wished of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from oslo_config import cfg
from oslo_log import log

from nova_lite import exception, rpc
from nova_lite.compute.claims import Claims
from nova_lite.compute.instance_locks import InstanceLocks
from nova_lite.compute.spawner import Spawner
from nova_lite.compute.work import Work
from nova_lite.conductor.rpcapi import ConductorAPI
from nova_lite.context import continuing, service_context
from nova_lite.network.driver import NetworkDriver
from nova_lite.objects import instance as states
from nova_lite.objects import move as steps
from nova_lite.objects.build import Claim
from nova_lite.objects.instance import Instance
from nova_lite.objects.move import MoveOutcome, MoveRequest, Progress
from nova_lite.virt.driver import Driver

LOG = log.getLogger(__name__)

_THREADS = 8

# A migration moves at least so many bytes a second where its time-out makes sense: it is per GiB of memory.
_GIB = 1 << 30


class Mover:
    """Does the steps of one compute process, those of one server one after the other."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        driver: Driver,
        network: NetworkDriver,
        spawner: Spawner,
        locks: InstanceLocks,
        work: Work,
        claims: Claims,
        conductor: ConductorAPI,
    ) -> None:
        self._conf = conf
        self._driver = driver
        self._network = network
        self._spawner = spawner
        self._locks = locks
        self._work = work
        self._claims = claims
        self._conductor = conductor
        self._steps: dict[str, Callable[[MoveRequest], dict[str, Any]]] = {
            steps.PREPARE: self._prepare,
            steps.MOVE_OUT: self._move_out,
            steps.FINISH: self._finish,
            steps.LIVE_MIGRATE: self._live_migrate,
            steps.LAND: self._land,
            steps.REBUILD: self._rebuild,
            steps.CLEAN: self._clean,
            steps.DISCARD: self._discard,
            steps.RESTORE: self._restore,
        }
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="move")
        most = conf.compute.max_concurrent_live_migrations
        self._migrations = ThreadPoolExecutor(most, thread_name_prefix="live-migration")
        self._migrating: set[str] = set()

    def move(self, requests: Sequence[MoveRequest]) -> None:
        """Accept steps; those of moves that are already being worked on are left alone."""
        for request in requests:
            if not request.operation:
                self._pool.submit(self._remove, request)
            elif self._work.begin(request.operation):
                pool = self._migrations if request.step == steps.LIVE_MIGRATE else self._pool
                pool.submit(self._work_off, request)

    def stop(self) -> None:
        """Finish what has been accepted; live migrations that run are let go of, and taken up by the next process."""
        self._pool.shutdown(wait=True)
        self._migrations.shutdown(wait=True, cancel_futures=True)

    def is_migrating(self, uuid: str) -> bool:
        """Tell whether a guest is on its way, so that its events mean nothing."""
        return uuid in self._migrating

    def remove(self, instance: Instance, shared: bool) -> None:
        """Remove what a server has left here, with its lock held by the caller and proof that it lives elsewhere."""
        self._driver.clean(instance, {"shared": shared})
        self._network.disconnect(instance)

    # -- one step

    def _work_off(self, request: MoveRequest) -> None:
        outcome = None
        try:
            with continuing(request.request_id), self._locks.holding(request.instance.uuid):
                if self._is_mine(request):
                    outcome = self._attempt(request)
        except rpc.Error as error:
            LOG.warning("no conductor answered operation=%s reason=%s", request.operation, error)
        finally:
            # Ended before it is reported: the next step may be for this very process.
            self._work.end(request.operation)
        if outcome is not None:
            self._report(outcome)

    def _report(self, outcome: MoveOutcome) -> None:
        """Tell how a step ended; if nobody hears it, the operation's lease brings the step back."""
        try:
            self._conductor.finish_steps(service_context(), [outcome])
        except rpc.Error as error:
            LOG.warning("no conductor heard operation=%s step=%s reason=%s", outcome.operation, outcome.step, error)

    def _is_mine(self, request: MoveRequest) -> bool:
        if not request.grant_id:
            server = self._claims.server
            return self._conductor.begin_step(service_context(), request.operation, request.step, server)
        claimed = self._claims.turn(
            [
                Claim(
                    request.operation,
                    request.instance.uuid,
                    request.grant_id,
                    request.node_id,
                    self._claims.server,
                    request.migration,
                    request.step,
                )
            ]
        )[0]
        if not claimed.granted:
            LOG.info("claim refused instance=%s reason=%s", request.instance.uuid, claimed.reason)
        return claimed.granted

    def _attempt(self, request: MoveRequest) -> MoveOutcome | None:
        instance = request.instance
        LOG.info("move step=%s instance=%s host=%s", request.step, instance.uuid, instance.host)
        outcome = MoveOutcome(request.operation, request.step, instance.uuid, instance.host, True)
        try:
            answer = self._steps[request.step](request)
        except exception.MigrationAborted as error:
            return replace(outcome, succeeded=False, aborted=True, reason=str(error))
        except exception.HypervisorUnavailable as error:
            if request.step == steps.LIVE_MIGRATE:
                LOG.warning("unclear where the guest runs instance=%s reason=%s", instance.uuid, error)
                return None  # looked at again when the lease has run out
            return replace(outcome, succeeded=False, reason=str(error))
        except exception.NovaLiteError as error:
            LOG.warning("%s failed instance=%s reason=%s", request.step, instance.uuid, error)
            return replace(outcome, succeeded=False, reason=str(error))
        except Exception:
            LOG.exception("%s failed unexpectedly instance=%s", request.step, instance.uuid)
            reason = "an unexpected error happened on the host; its log has the details"
            return replace(outcome, succeeded=False, reason=reason)
        addresses = answer.pop("addresses", None)
        return replace(outcome, answer=answer, addresses=addresses, power_state=self._power_state(instance))

    def _power_state(self, instance: Instance) -> int:
        try:
            return self._driver.power_state(instance)
        except exception.NovaLiteError:
            return states.NOSTATE

    # -- at the destination

    def _prepare(self, request: MoveRequest) -> dict[str, Any]:
        instance = request.instance
        if not request.arguments.get("stays"):
            self._check_nothing_is_left(instance)
        image = self._spawner.fetch_if_there(instance)
        vifs, drive, _addresses = self._spawner.connect(instance)
        live = bool(request.arguments.get("live"))
        return self._driver.prepare_destination(instance, image, vifs, drive, live)

    def _check_nothing_is_left(self, instance: Instance) -> None:
        """Refuse a server whose domain from an earlier stay is still here: it would be taken for the server itself.

        :raises MigrationFailed: there is one; it goes with the next report.
        """
        if any(domain.node == instance.node for domain in self._driver.domains_of(instance.uuid)):
            raise exception.MigrationFailed(
                reason=f"host {instance.host} has not yet removed what the server left there when it was moved away. "
                "Try again later."
            )

    def _finish(self, request: MoveRequest) -> dict[str, Any]:
        instance = request.instance
        image = self._spawner.fetch_if_there(instance)
        vifs, drive, addresses = self._spawner.connect(instance)
        self._driver.finish_migration(instance, request.destination, image, vifs, drive, request.power_on)
        return {"addresses": addresses}

    def _land(self, request: MoveRequest) -> dict[str, Any]:
        vifs, drive, _addresses = self._spawner.connect(request.instance)
        self._driver.land(request.instance, vifs, drive)
        return {}

    def _rebuild(self, request: MoveRequest) -> dict[str, Any]:
        """Take up an evacuated server: from its disks if they can be seen here, else anew from its image."""
        instance = request.instance
        if request.grant_id:
            self._check_nothing_is_left(instance)
        if self._driver.has_disks(instance):
            vifs, drive, addresses = self._spawner.connect(instance)
            self._driver.adopt(instance, vifs, drive, request.power_on)
            return {"addresses": addresses, "shared": True}
        addresses = self._spawner.spawn(instance)
        if not request.power_on:
            self._driver.power_off(instance, 0)
        return {"addresses": addresses, "shared": False}

    def _discard(self, request: MoveRequest) -> dict[str, Any]:
        self._driver.discard(request.instance, request.destination)
        if not request.destination.get("same_host"):
            self._network.disconnect(request.instance)
        return {}

    # -- at the source

    def _move_out(self, request: MoveRequest) -> dict[str, Any]:
        self._driver.move_out(request.instance, request.destination, self._conf.compute.shutdown_timeout)
        return {}

    def _live_migrate(self, request: MoveRequest) -> dict[str, Any]:
        uuid = request.instance.uuid
        self._migrating.add(uuid)
        try:
            self._driver.live_migrate(request.instance, request.destination, self._watch(request))
        finally:
            self._migrating.discard(uuid)
        return {}

    def _watch(self, request: MoveRequest) -> Callable[[Progress], str]:
        """Return what tells the conductor of the progress, and the driver of what is wished."""
        options = self._conf.compute
        size = max(1.0, (request.instance.flavor.memory_mb << 20) / _GIB)
        allowed = options.live_migration_completion_timeout * size
        began = time.monotonic()

        def watch(progress: Progress) -> str:
            try:
                wish = self._conductor.live_migration_progress(
                    service_context(), request.migration, request.operation, progress
                )
            except rpc.Error as error:
                LOG.warning("no conductor answered migration=%s reason=%s", request.migration, error)
                wish = ""
            if not wish and allowed and time.monotonic() - began > allowed:
                LOG.warning("live migration takes longer than %.0f s instance=%s", allowed, request.instance.uuid)
                return steps.ABORT if options.live_migration_timeout_action == "abort" else steps.FORCE_COMPLETE
            return wish

        return watch

    def _clean(self, request: MoveRequest) -> dict[str, Any]:
        self._driver.clean(request.instance, request.destination)
        if not request.destination.get("same_host"):
            self._network.disconnect(request.instance)
        return {}

    def _restore(self, request: MoveRequest) -> dict[str, Any]:
        vifs, _drive, addresses = self._spawner.connect(request.instance)
        self._driver.restore(request.instance, request.destination, request.power_on)
        return {"addresses": addresses}

    # -- with nobody waiting

    def _remove(self, request: MoveRequest) -> None:
        """Remove what is here of a server that is being deleted elsewhere."""
        self._work.doom(request.instance.uuid)
        try:
            with continuing(request.request_id), self._locks.holding(request.instance.uuid):
                self._driver.destroy(request.instance)
                self._network.disconnect(request.instance)
        except exception.NovaLiteError as error:
            # The next report of what is here finds it again.
            LOG.warning("remains not removed instance=%s reason=%s", request.instance.uuid, error)

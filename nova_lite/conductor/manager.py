# SPDX-License-Identifier: Apache-2.0
"""The conductor process: drives operations, and is the database's only writer for the computes.

Operations come as hints (from the api, or from this very process) or from the sweep, and go one way: they are claimed,
batch by batch, and routed by their kind to the task that drives them. Whoever is not claimed is somebody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log

from nova_lite import audit, exception, metrics, rpc
from nova_lite.batching import Batcher, answering_nothing
from nova_lite.compute.rpcapi import ComputeAPI
from nova_lite.conductor.drainer import Drainer
from nova_lite.conductor.leases import Leases
from nova_lite.conductor.tasks import Task, Tools
from nova_lite.conductor.tasks.action import KINDS as ACTION_KINDS
from nova_lite.conductor.tasks.action import ActionTask
from nova_lite.conductor.tasks.build import BuildTask
from nova_lite.conductor.tasks.move import KINDS as MOVE_KINDS
from nova_lite.conductor.tasks.move import MoveTask
from nova_lite.conductor.tasks.unshelve import UnshelveTask
from nova_lite.context import RequestContext
from nova_lite.db import actions, addresses, left_behind, moves, operations, registry, shelves, turns
from nova_lite.db.instances import Caller
from nova_lite.db.operations import Operation
from nova_lite.db.session import Database
from nova_lite.objects.action import ActionOutcome
from nova_lite.objects.build import BuildOutcome, Claim, ClaimOutcome
from nova_lite.objects.instance import DomainInfo
from nova_lite.objects.move import MoveOutcome, Progress
from nova_lite.objects.node import NodeInventory, NodeRecord
from nova_lite.scheduler.rpcapi import SchedulerAPI
from nova_lite.service import Heartbeat, Periodic, Service

LOG = log.getLogger(__name__)


class Router:
    """Claims operations and routes them to the tasks that drive them."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database) -> None:
        self._conf = conf
        self._db = db
        self.leases = Leases(conf, db)
        scheduler = SchedulerAPI(conf.conductor.scheduler_timeout)
        tools = Tools(conf, db, self.leases, scheduler, ComputeAPI(), self.hint)
        self.builds = BuildTask(tools)
        self.actions = ActionTask(tools)
        self.moves = MoveTask(tools)
        limit = conf.conductor.build_batch
        # Two threads per family: one batch may wait for a scheduler while the next is on its way.
        self._queues: dict[str, Batcher[Operation, None]] = {
            operations.CREATE: Batcher("builds", _driver(self.builds), limit, threads=2)
        }
        acting: Batcher[Operation, None] = Batcher("actions", _driver(self.actions), limit, threads=2)
        self._queues |= dict.fromkeys(ACTION_KINDS, acting)
        unshelving = UnshelveTask(tools, self.builds, self.actions)
        self._queues[operations.UNSHELVE] = Batcher("unshelves", _driver(unshelving), limit, threads=2)
        moving: Batcher[Operation, None] = Batcher("moves", _driver(self.moves), limit, threads=2)
        self._queues |= dict.fromkeys(MOVE_KINDS, moving)
        self._hints: Batcher[str, None] = Batcher("hints", answering_nothing(self._claim), limit)

    def hint(self, operation_uuids: Sequence[str]) -> None:
        """Look at these operations soon."""
        self._hints.submit(list(operation_uuids))

    def sweep(self) -> None:
        """Take over operations whose lease ran out: whoever worked on them is dead, or their hint was lost."""
        limit, lease = self._conf.conductor.sweep_batch, self.leases.seconds
        taken = self._db.write(lambda conn: operations.claim_abandoned(conn, self.leases.owner, lease, limit))
        if taken:
            for operation in taken:
                metrics.OPERATIONS_TAKEN_OVER.labels(operation.kind).inc()
            LOG.info("taken over operations=%s", ",".join(f"{each.kind}:{each.uuid}" for each in taken))
            self._route(taken)

    def stop(self) -> None:
        self._hints.stop()
        for queue in {id(queue): queue for queue in self._queues.values()}.values():
            queue.stop()
        self.leases.stop()

    def _claim(self, operation_uuids: Sequence[str]) -> None:
        owner, lease = self.leases.owner, self.leases.seconds
        self._route(self._db.write(lambda conn: operations.claim(conn, operation_uuids, owner, lease)))

    def _route(self, claimed: Sequence[Operation]) -> None:
        by_queue: dict[int, tuple[Batcher[Operation, None], list[Operation]]] = {}
        for operation in claimed:
            queue = self._queues.get(operation.kind)
            if queue is None:
                LOG.error("operation of an unknown kind operation=%s kind=%s", operation.uuid, operation.kind)
                continue
            by_queue.setdefault(id(queue), (queue, []))[1].append(operation)
        for queue, mine in by_queue.values():
            self.leases.hold(operation.uuid for operation in mine)
            queue.submit(mine)


def _driver(task: Task) -> Callable[[Sequence[Operation]], list[None]]:
    def drive(batch: Sequence[Operation]) -> None:
        try:
            task.drive(batch)
        except Exception:
            # The leases are let go without being ended: the sweep comes back to what is left of the batch.
            LOG.exception("operations left to the sweep operations=%s", ",".join(each.uuid for each in batch))
            task.tools.leases.let_go(each.uuid for each in batch)

    return answering_nothing(drive)


class Endpoint:
    """What the bus may call."""

    target = rpc.endpoint_target

    def __init__(self, conf: cfg.ConfigOpts, db: Database, router: Router) -> None:
        self._conf = conf
        self._db = db
        self._router = router

    @rpc.expose
    def run(self, context: RequestContext, operations: list[str]) -> None:
        self._router.hint(operations)

    @rpc.expose
    def consume_grants(self, context: RequestContext, claims: list[Claim]) -> list[ClaimOutcome]:
        outcomes = self._router.builds.consume(claims)
        refused = {outcome.operation for outcome in outcomes if not outcome.granted}
        moving = [(claim.operation, claim.migration) for claim in claims if claim.migration]
        self._router.moves.refused([each for each in moving if each[0] in refused])
        return outcomes

    @rpc.expose
    def finish_builds(self, context: RequestContext, outcomes: list[BuildOutcome]) -> None:
        self._router.builds.finish(outcomes)

    @rpc.expose
    def finish_actions(self, context: RequestContext, outcomes: list[ActionOutcome]) -> None:
        self._router.actions.finish(outcomes)

    @rpc.expose
    def note_progress(self, context: RequestContext, operation: str, task_state: str, saving: bool) -> None:
        self._db.write(lambda conn: actions.note_progress(conn, operation, task_state, saving))

    @rpc.expose
    def begin_step(self, context: RequestContext, operation: str, step: str, server: str) -> bool:
        return self._router.moves.begin_step(operation, step, server)

    @rpc.expose
    def finish_steps(self, context: RequestContext, outcomes: list[MoveOutcome]) -> None:
        self._router.moves.finish(outcomes)

    @rpc.expose
    def live_migration_progress(
        self, context: RequestContext, migration: str, operation: str, progress: Progress
    ) -> str:
        return self._db.write(lambda conn: turns.note_progress(conn, migration, operation, progress))

    @rpc.expose
    def may_remove(self, context: RequestContext, uuid: str, host: str) -> dict[str, Any] | None:
        found = self._db.read(lambda conn: left_behind.proven(conn, [(uuid, host)]))
        if not found and self._db.read(lambda conn: shelves.offloaded(conn, [uuid])):
            return {"shared": False, "migration": None}
        return {"shared": found[0].shared, "migration": found[0].migration} if found else None

    @rpc.expose
    def removed(self, context: RequestContext, migration: str) -> None:
        self._db.write(lambda conn: turns.close(conn, migration))

    @rpc.expose
    def register(
        self, context: RequestContext, server: str, nodes: list[NodeInventory], starting: bool
    ) -> list[NodeRecord]:
        records = [self._register(server, node) for node in nodes]
        if starting:
            left = self._db.write(lambda conn: operations.abandon(conn, server))
            LOG.info("compute registered server=%s nodes=%d operations_left=%d", server, len(nodes), left)
        return records

    def _register(self, server: str, node: NodeInventory) -> NodeRecord:
        def unit(conn: Any) -> NodeRecord:
            service_id = registry.register_service(conn, registry.COMPUTE, node.host, server)
            return registry.register_node(conn, service_id, node)

        try:
            return self._db.write(unit)
        except db_exception.DBDuplicateEntry:  # two registered the same host at once; now its rows are there
            return self._db.write(unit)

    @rpc.expose
    def heartbeat(self, context: RequestContext, hosts: list[str], server: str, operations: list[str]) -> None:
        self._db.write(lambda conn: registry.heartbeat(conn, registry.COMPUTE, hosts))
        if operations:
            self._renew(server, operations)

    def _renew(self, server: str, uuids: list[str]) -> None:
        lease = self._conf.conductor.lease
        self._db.write(lambda conn: operations.renew(conn, uuids, server, lease))

    @rpc.expose
    def wanted(self, context: RequestContext, uuids: list[str]) -> list[str]:
        return sorted(self._db.read(lambda conn: operations.active(conn, uuids)))

    @rpc.expose
    def report_power_state(self, context: RequestContext, host: str, domain: DomainInfo) -> None:
        if self._db.write(lambda conn: actions.report_power_state(conn, host, domain.uuid, domain.power_state)):
            LOG.info("power state changed by itself instance=%s state=%d", domain.uuid, domain.power_state)

    @rpc.expose
    def report_domains(
        self, context: RequestContext, hosts: list[str], domains: list[DomainInfo], remains: list[DomainInfo]
    ) -> list[dict[str, Any]]:
        """Answer which of the domains to destroy, and which to look at again.

        What differs from the row is not taken over from here: since the list was made, an action may have begun and
        ended, and the list would undo it. The compute looks again under the instance's lock.
        """
        there = [*domains, *remains]
        uuids = [domain.uuid for domain in there]
        host_of = self._db.read(lambda conn: registry.hosts_of_nodes(conn, hosts))
        places = {(domain.uuid, host_of.get(domain.node, "")) for domain in there}
        deleted = self._db.read(lambda conn: actions.deleted(conn, uuids))
        resting = self._db.read(lambda conn: actions.expected_on(conn, hosts))
        known = self._db.read(lambda conn: actions.known(conn, uuids))
        moved = {(each.uuid, each.host) for each in self._db.read(lambda conn: left_behind.proven(conn, places))}
        elsewhere = known - deleted - resting.keys()
        offloaded = self._db.read(lambda conn: shelves.offloaded(conn, sorted(elsewhere)))
        answer = []
        for domain in there:
            host, finding = host_of.get(domain.node, ""), ""
            if domain.uuid not in known:
                LOG.warning("unknown domain left alone uuid=%s node=%s", domain.uuid, domain.node)
            elif domain.uuid in deleted:
                finding = "deleted"
            elif (domain.uuid, host) in moved or domain.uuid in offloaded:
                finding = "moved"
            elif domain not in remains and resting.get(domain.uuid, (host,))[0] == host:
                differs = domain.uuid in resting and resting[domain.uuid][1] != domain.power_state
                finding = "differs" if differs else ""
            if finding:
                answer.append({"uuid": domain.uuid, "host": host, "node": domain.node, "finding": finding})
        return [*answer, *self._evacuated(hosts, places), *self._with_addresses(hosts, places)]

    def _evacuated(self, hosts: list[str], places: set[tuple[str, str]]) -> list[dict[str, Any]]:
        """List the servers that were evacuated from hosts which report nothing of them, and that still hold a half.

        A report may be older than the server's very arrival there (Launchpad 1896463), so it takes no half back: the
        compute removes what there is, if anything, and says so.
        """
        return [
            {"uuid": each.uuid, "host": each.host, "node": each.node, "finding": "moved"}
            for each in self._db.read(lambda conn: left_behind.evacuated(conn, hosts))
            if (each.uuid, each.host) not in places
        ]

    def _with_addresses(self, hosts: list[str], places: set[tuple[str, str]]) -> list[dict[str, Any]]:
        """List the deleted servers whose addresses wait for hosts which report nothing of them.

        A report may be older than a domain whose build was under way, so it frees nothing: the compute removes what
        there is, if anything, under the server's lock, and says so.
        """
        return [
            {"uuid": each.instance_uuid, "host": each.host, "node": each.node, "finding": "deleted"}
            for each in self._db.read(lambda conn: addresses.leaving(conn, hosts))
            if (each.instance_uuid, each.host) not in places
        ]

    @rpc.expose
    def vacated(self, context: RequestContext, uuid: str, host: str) -> None:
        if self._db.write(lambda conn: addresses.vacated(conn, uuid, host)):
            LOG.info("address free instance=%s host=%s", uuid, host)


class ConductorService(Service):
    """One conductor; any number may run."""

    name = "conductor"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def start(self) -> None:
        self._db = Database(self._conf)
        rpc.start(self._conf)
        self._router = Router(self._conf, self._db)
        self._heartbeat = Heartbeat(self._conf, self._db, registry.CONDUCTOR)
        self._sweeper = Periodic("sweeper", self._conf.conductor.sweep_interval, self._router.sweep)
        self._offloader = Periodic("offloader", self._conf.conductor.sweep_interval, self._offload_shelved)
        self._confirmer = Periodic("confirmer", self._conf.conductor.sweep_interval, self._confirm_stale)
        drainer = Drainer(self._conf, self._db, self._router.leases.owner, self._router.hint)
        self._drainer = Periodic("drainer", self._conf.conductor.drain_interval, drainer.turn)
        self._auditor = Periodic("audit", self._conf.conductor.audit_interval, self._audit)
        endpoint = Endpoint(self._conf, self._db, self._router)
        self._server = rpc.serve(rpc.CONDUCTOR, self._conf.host, endpoint, self._conf.rpc_workers)

    def stop(self) -> None:
        self._server.stop()
        self._server.wait()
        self._sweeper.stop()
        self._offloader.stop()
        self._confirmer.stop()
        self._drainer.stop()
        self._auditor.stop()
        self._router.stop()
        self._heartbeat.stop()
        self._db.close()

    def _offload_shelved(self) -> None:
        """Take the places of servers that have been shelved for longer than shelved_offload_time."""
        seconds, limit = self._conf.compute.shelved_offload_time, self._conf.conductor.sweep_batch
        if seconds <= 0:
            return
        due = self._db.read(lambda conn: shelves.due(conn, seconds, limit))
        hosts = sorted({row.host for row in due if row.host})
        if not hosts:
            return
        servers = self._db.read(lambda conn: registry.compute_servers(conn, hosts, self._conf.service_down_time))
        for row in due:
            if not servers.get(row.host or "", ("", False))[1]:
                continue  # its host is down, and what it has there cannot go yet
            try:
                operation = self._db.write(partial(shelves.begin_offload_of_due, row=row))
            except exception.NovaLiteError as error:
                LOG.info("not offloaded instance=%s reason=%s", row.uuid, error)
                continue
            LOG.info("offloaded after %d s instance=%s host=%s", seconds, row.uuid, row.host)
            self._router.hint([operation])

    def _confirm_stale(self) -> None:
        """Confirm resizes and migrations that have waited for longer than resize_confirm_window."""
        window = self._conf.conductor.resize_confirm_window
        if not window:
            return
        for uuid, project, user, migration in self._db.read(lambda conn: moves.stale_resizes(conn, window)):
            caller = Caller(project, user, f"req-{migration}", may_override_lock=True)
            try:
                operation = self._db.write(partial(moves.end, uuid=uuid, kind=operations.CONFIRM, caller=caller))
            except exception.NovaLiteError as error:
                LOG.info("not confirmed instance=%s reason=%s", uuid, error)
                continue
            LOG.info("confirmed after %.0f s instance=%s", window, uuid)
            self._router.hint([operation])

    def _audit(self) -> None:
        """Look for what is wrong in the books, and show it; mending is for a person to decide (nova-lite-manage)."""
        found = audit.counts(self._db)
        for kind, count in found.items():
            metrics.AUDIT_FINDINGS.labels(kind).set(count)
        wrong = {kind: count for kind, count in found.items() if count}
        if wrong:
            LOG.warning("audit findings=%s; see nova-lite-manage audit", wrong)

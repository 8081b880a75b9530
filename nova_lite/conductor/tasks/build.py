# SPDX-License-Identifier: Apache-2.0
"""Builds: from an accepted create to a server that is ACTIVE, or in ERROR with its reason.

    accepted ──schedulers──> placed ──compute consumes──> building ──compute reports──> ACTIVE
       ▲                        │                            │
       └──── grant refused ─────┴──── failed on this host ───┘   (max_attempts) ──> ERROR

All builds that wait at a moment go to one scheduler in one call, and to each compute in one message. What is at
"accepted" or "placed" holds no allocation: it can be scheduled again by anybody, since a scheduler replaces the
consumer's older grants. What is at "building" has an allocation, and maybe a domain: it is given to its compute again,
and if that is down for too long it ends in ERROR where it is, never elsewhere: two hosts might both come to run it.

Costs of a batch of n builds on h hosts, all going well: 2 transactions and 1 call here before the computes are told
in h casts; 1 transaction for all that consume together; 1 for all that report together. With a built-in network there
is 1 transaction more, before the scheduler is asked, in which all get their addresses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from oslo_log import log

from nova_lite import exception, metrics, rpc
from nova_lite.conductor import notifications
from nova_lite.conductor.tasks import Task, Tools
from nova_lite.context import continuing, service_context
from nova_lite.db import addresses, allocations, builds, instances, operations, registry, shelves
from nova_lite.db.builds import Build
from nova_lite.db.operations import Operation
from nova_lite.network import builtin
from nova_lite.objects import instance as states
from nova_lite.objects.build import BuildOutcome, BuildRequest, Claim, ClaimOutcome
from nova_lite.objects.image import Image
from nova_lite.objects.instance import Instance
from nova_lite.objects.network import Network
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.selection import Selection

LOG = log.getLogger(__name__)


class BuildTask(Task):
    """Operations of the kind create, and of unshelve those of servers that have no place."""

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._network = builtin.read(tools.conf)

    def drive(self, claimed: Sequence[Operation]) -> None:
        found = self.tools.db.read(lambda conn: builds.gather(conn, claimed))
        missing = {operation.uuid for operation in claimed} - {build.operation.uuid for build in found}
        if missing:
            self.tools.db.write(
                lambda conn: operations.finish(conn, sorted(missing), operations.CANCELLED, "The server is gone.")
            )
        fresh = [build for build in found if build.allocated_node is None]
        for build in fresh:
            if build.operation.step == "accepted" and not build.attempts:
                notifications.emit(build.operation, "start", build.instance)
        fresh = self._give_addresses(fresh)
        if fresh:
            self._schedule(fresh)
        self._resume([build for build in found if build.allocated_node is not None])
        self.tools.leases.let_go(operation.uuid for operation in claimed)

    # -- addresses

    def _give_addresses(self, waiting: Sequence[Build]) -> list[Build]:
        """Give those an address that are to have one; return those that are to be scheduled now.

        Before they have a host: which one it will be makes no difference to an address, and a network that is full is
        no reason to try another host.
        """
        network = self._network
        wanting = {build.instance.uuid for build in waiting if addresses.wants_address(build.instance.networks)}
        if network is None or not wanting:
            return list(waiting)
        given = self.tools.db.write(lambda conn: addresses.assign(conn, network, sorted(wanting)))
        ready = []
        for build in waiting:
            text = given.get(build.instance.uuid, "")
            if build.instance.uuid not in wanting:
                ready.append(build)
            elif addresses.has_address(text):
                ready.append(replace(build, instance=build.instance._replace(networks=text)))
            else:
                # Of a server that was deleted meanwhile, this ends nothing.
                self._fail(build, _network_is_full(network), "no-address", self.tools.leases.owner)
        return ready

    # -- scheduling

    def _schedule(self, waiting: Sequence[Build]) -> None:
        specs = [_request_spec(build) for build in waiting]
        try:
            selections = self.tools.scheduler.select_destinations(service_context(), specs)
        except (rpc.Error, exception.NovaLiteError) as error:
            self._no_answer(waiting, error)
            return
        undecided = [build for build, selection in zip(waiting, selections, strict=True) if selection.is_undecided]
        if undecided:
            self.tools.hint(self._no_answer(undecided, "the scheduler did not get to them in time"))
        placed: list[tuple[Build, str | None]] = []
        requests: dict[str, list[BuildRequest]] = defaultdict(list)
        for build, selection in zip(waiting, selections, strict=True):
            if selection.is_undecided:
                continue
            if selection.superseded:
                LOG.info("scheduled by another conductor instance=%s", selection.consumer)
            elif selection.grant_id is None:
                self._no_valid_host(build, selection.reason or "")
            else:
                placed.append((build, selection.host))
                requests[selection.server or ""].append(_build_request(build, selection))
                _log_placed(build, selection)
        if placed:
            leases = self.tools.leases
            self.tools.db.write(lambda conn: builds.note_placed(conn, placed, leases.owner, leases.seconds))
        for server, mine in requests.items():
            self.tools.compute.build(service_context(), server, mine)

    def _no_answer(self, waiting: Sequence[Build], reason: object) -> list[str]:
        """Let whoever claims them try again, and end those that have waited too long; return the others' operations."""
        LOG.warning("no scheduler answered builds=%d reason=%s", len(waiting), reason)
        uuids = [build.operation.uuid for build in waiting]
        patience, owner = self.tools.conf.conductor.scheduler_patience, self.tools.leases.owner
        late = self.tools.db.read(lambda conn: operations.older(conn, uuids, patience))
        for build in waiting:
            if build.operation.uuid in late:
                self._fail(
                    build, f"No scheduler answered for {patience:.0f} seconds. Try again later.", "scheduler", owner
                )
        rest = sorted(set(uuids) - late)
        self.tools.db.write(lambda conn: operations.release(conn, rest, owner))
        return rest

    def _no_valid_host(self, build: Build, reason: str) -> None:
        if build.attempts:
            tried = "; ".join(f"{attempt['host']}: {attempt['reason']}" for attempt in build.attempts)
            reason = f"{reason} Tried before: {tried}."
        self._fail(build, reason, "no-valid-host", self.tools.leases.owner)

    def _fail(self, build: Build, message: str, why: str, owner: str | None = None, keep_host: bool = False) -> None:
        if self.tools.db.write(lambda conn: builds.fail(conn, build, message, owner=owner, keep_host=keep_host)):
            metrics.BUILDS.labels("failed").inc()
            with continuing(build.operation.request_id):
                LOG.info("build failed instance=%s why=%s reason=%s", build.instance.uuid, why, message)
            state = states.SHELVED_OFFLOADED if build.is_unshelve else states.ERROR
            notifications.emit(build.operation, "error", build.instance, state=state, fault=message)

    # -- going on with what has an allocation

    def _resume(self, allocated: Sequence[Build]) -> None:
        hosts = sorted({build.instance.host for build in allocated if build.instance.host})
        if not hosts:
            return
        servers = self.tools.db.read(
            lambda conn: registry.compute_servers(conn, hosts, self.tools.conf.service_down_time)
        )
        patience = self.tools.conf.conductor.compute_down_patience
        waiting = {build.operation.uuid: build.instance.host or "" for build in allocated}
        late = self.tools.db.read(lambda conn: operations.overdue(conn, waiting, patience))
        for build in allocated:
            host = build.instance.host or ""
            server, up = servers.get(host, ("", False))
            if up:
                request = _build_request(build, Selection(build.instance.uuid, 0, build.allocated_node, host))
                LOG.info("build taken up again instance=%s host=%s", build.instance.uuid, host)
                self.tools.compute.build(service_context(build.operation.request_id), server, [request])
            elif build.operation.uuid in late:
                advice = "Unshelve it again." if build.is_unshelve else "Delete the server and create it again."
                message = (
                    f"The compute host {host} went down while it built the server and did not return for "
                    f"{patience:.0f} seconds. {advice}"
                )
                # What an unshelve leaves there goes when the host returns: the server's row says that it has no place.
                self._fail(build, message, "host-down", keep_host=not build.is_unshelve)

    # -- what computes report

    def consume(self, claims: Sequence[Claim]) -> list[ClaimOutcome]:
        """Turn grants into allocations; what is refused is scheduled again at once."""
        lease = self.tools.conf.conductor.lease
        outcomes = self.tools.db.write(lambda conn: allocations.consume(conn, claims, lease))
        refused = [outcome for outcome in outcomes if not outcome.granted]
        metrics.CLAIMS.labels("granted").inc(len(outcomes) - len(refused))
        metrics.CLAIMS.labels("refused").inc(len(refused))
        if refused:
            for outcome in refused:
                LOG.info("grant refused instance=%s reason=%s", outcome.consumer, outcome.reason)
            moving = {claim.operation for claim in claims if claim.migration}
            again = [outcome.operation for outcome in refused if outcome.operation not in moving]
            self.tools.db.write(lambda conn: builds.schedule_again(conn, again))
            self.tools.hint(again)
        return outcomes

    def finish(self, outcomes: Sequence[BuildOutcome]) -> None:
        """Publish what succeeded; schedule again, or end, what failed."""
        succeeded = [outcome for outcome in outcomes if outcome.succeeded]
        done = self.tools.db.write(lambda conn: builds.complete(conn, succeeded)) if succeeded else []
        metrics.BUILDS.labels("active").inc(len(done))
        failed = [outcome.operation for outcome in outcomes if not outcome.succeeded]
        wanted = failed + [outcome.operation for outcome in succeeded if outcome.consumer in done]
        found = {
            build.operation.uuid: build
            for build in self.tools.db.read(lambda conn: builds.gather(conn, operations.get_many(conn, wanted)))
        }
        for outcome in outcomes:
            build = found.get(outcome.operation)
            if build is None:
                continue
            if not outcome.succeeded:
                self._attempt_failed(build, outcome)
            elif outcome.consumer in done:
                with continuing(build.operation.request_id):
                    LOG.info("active instance=%s host=%s", outcome.consumer, outcome.host)
                notifications.emit(build.operation, "end", build.instance)
                if build.is_unshelve:
                    self._forget_image(build, outcome.host)

    def _forget_image(self, build: Build, host: str) -> None:
        """Remove the image that the server was unshelved from."""
        gone = self.tools.db.write(lambda conn: shelves.forget_image(conn, build.operation))
        down_time = self.tools.conf.service_down_time
        servers = self.tools.db.read(lambda conn: registry.compute_servers(conn, [host], down_time))
        if gone and host in servers:
            self.tools.compute.discard_images(service_context(), servers[host][0], gone)

    def _attempt_failed(self, build: Build, outcome: BuildOutcome) -> None:
        # What is reported twice, or late, is not about the attempt that is under way now.
        if build.operation.status != operations.ACTIVE or build.instance.host != outcome.host:
            return
        metrics.FAILED_ATTEMPTS.labels(outcome.host).inc()
        with continuing(build.operation.request_id):
            LOG.warning("attempt failed instance=%s host=%s reason=%s", outcome.consumer, outcome.host, outcome.reason)
        if not outcome.retriable:
            self._fail(build, outcome.reason, "not-retriable")
            return
        threshold = self.tools.conf.conductor.disable_after_build_failures
        if self.tools.db.write(lambda conn: builds.count_failure(conn, outcome.host, threshold)):
            LOG.error("compute service disabled host=%s after=%d failures", outcome.host, threshold)
        if len(build.attempts) + 1 >= self.tools.conf.conductor.max_attempts:
            attempts = [*build.attempts, {"host": outcome.host, "reason": outcome.reason}]
            tried = "; ".join(f"{attempt['host']}: {attempt['reason']}" for attempt in attempts)
            self._fail(build, f"The build failed on {len(attempts)} hosts, which is the limit. {tried}.", "attempts")
        elif self.tools.db.write(lambda conn: builds.retry_elsewhere(conn, build, outcome)):
            self.tools.hint([build.operation.uuid])


def _network_is_full(network: Network) -> str:
    return (
        f"No address is free on network {network.name} ({network.subnet}): all {network.size} are in use. Delete "
        "servers that are not needed, or have the operator enlarge the subnet; then create the server again."
    )


def _log_placed(build: Build, selection: Selection) -> None:
    with continuing(build.operation.request_id):
        LOG.info("placed instance=%s host=%s fall_overs=%d", selection.consumer, selection.host, selection.fall_overs)


def _request_spec(build: Build) -> RequestSpec:
    spec = instances.to_request_spec(
        build.instance,
        build.group,
        excluded_hosts=build.excluded_hosts,
        request_id=build.operation.request_id,
    )
    if build.is_unshelve:
        # Where the server was once created says nothing of where it is to go now.
        return replace(spec, requested_host=build.operation.arguments["host"], requested_node=None)
    return spec


def _build_request(build: Build, selection: Selection) -> BuildRequest:
    return BuildRequest(
        operation=build.operation.uuid,
        grant_id=selection.grant_id or 0,
        node_id=selection.node_id or 0,
        instance=_to_object(build, selection),
        request_id=build.operation.request_id,
    )


def _to_object(build: Build, selection: Selection) -> Instance:
    instance = instances.to_object(build.instance, selection.host, selection.node)
    return replace(instance, image=Image(**build.operation.arguments["image"])) if build.is_unshelve else instance

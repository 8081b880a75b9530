# SPDX-License-Identifier: Apache-2.0
"""Actions on a server where it is: stop, start, reboot, pause, suspend and their kin, and delete.

The compute does them and reports; here they are handed over, and what they have come to is published. A delete whose
compute is down, or that never got to one, frees the books at once; the domain goes when its host returns and learns
from the row that the server is deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from oslo_log import log

from nova_lite.conductor import notifications
from nova_lite.conductor.tasks import Task
from nova_lite.conductor.tasks.move import removal
from nova_lite.context import continuing, service_context
from nova_lite.db import actions, endings, instances, left_behind, operations, registry
from nova_lite.db.instances import Instance
from nova_lite.db.operations import Operation
from nova_lite.objects import instance as states
from nova_lite.objects.action import ActionOutcome, ActionRequest

LOG = log.getLogger(__name__)

# What the API calls the event of each kind on a compute.
_EVENTS = {
    operations.DELETE: "compute_terminate_instance",
    operations.STOP: "compute_stop_instance",
    operations.START: "compute_start_instance",
    operations.REBOOT: "compute_reboot_instance",
    operations.PAUSE: "compute_pause_instance",
    operations.UNPAUSE: "compute_unpause_instance",
    operations.SUSPEND: "compute_suspend_instance",
    operations.RESUME: "compute_resume_instance",
    operations.REBUILD: "compute_rebuild_instance",
    operations.RESCUE: "compute_rescue_instance",
    operations.UNRESCUE: "compute_unrescue_instance",
    operations.SHELVE: "compute_shelve_instance",
    operations.SHELVE_OFFLOAD: "compute_shelve_offload_instance",
    operations.UNSHELVE: "compute_unshelve_instance",
    operations.CREATE_IMAGE: "compute_snapshot_instance",
    operations.CREATE_BACKUP: "compute_backup_instance",
}
KINDS = tuple(_EVENTS)


class ActionTask(Task):
    """Operations of the kinds that a compute does in one go."""

    def drive(self, claimed: Sequence[Operation]) -> None:
        rows, servers = self._look(claimed)
        handed: dict[tuple[str, str], list[Operation]] = defaultdict(list)
        finished: list[Operation] = []
        waiting: list[Operation] = []
        for operation in claimed:
            row = rows.get(operation.instance_uuid)
            server, up = servers.get(row.host or "", ("", False)) if row else ("", False)
            if row is None:
                self._cancel(operation)
            elif up:
                kind = _part(operation, row)
                handed[server, kind].append(operation)
                notifications.emit(replace(operation, kind=kind), "start", row)
            elif operation.kind == operations.DELETE:
                finished.append(operation)
            else:
                waiting.append(operation)
        self._remove_elsewhere([operation for operation in claimed if operation.kind == operations.DELETE], rows)
        for (server, kind), mine in handed.items():
            self._hand_over(server, kind, mine, rows)
        if finished:
            self._finish_deletes(finished, rows, domains_gone=False)
        self._wait_or_fail(waiting, rows)
        self.tools.leases.let_go(operation.uuid for operation in claimed)

    def _look(self, claimed: Sequence[Operation]) -> tuple[dict[str, Instance], dict[str, tuple[str, bool]]]:
        uuids = [operation.instance_uuid for operation in claimed]
        rows = {row.uuid: row for row in self.tools.db.read(lambda conn: instances.get_many(conn, uuids))}
        hosts = sorted({row.host for row in rows.values() if row.host})
        down_time = self.tools.conf.service_down_time
        servers = self.tools.db.read(lambda conn: registry.compute_servers(conn, hosts, down_time)) if hosts else {}
        return rows, servers

    def _remove_elsewhere(self, deletes: Sequence[Operation], rows: dict[str, Instance]) -> None:
        """Tell other hosts that have something of servers on the move to remove it; their reports make sure of it."""
        by_server = {operation.instance_uuid: operation for operation in deletes}
        if not by_server:
            return
        places = self.tools.db.read(lambda conn: left_behind.other_places(conn, sorted(by_server)))
        hosts = sorted({host for _uuid, host, _node in places})
        if not hosts:
            return
        down_time = self.tools.conf.service_down_time
        servers = self.tools.db.read(lambda conn: registry.compute_servers(conn, hosts, down_time))
        for uuid, host, node in places:
            if host in servers and uuid in rows:
                request = removal(by_server[uuid], rows[uuid], host, node)
                self.tools.compute.move(service_context(), servers[host][0], [request])

    def _cancel(self, operation: Operation) -> None:
        self.tools.db.write(
            lambda conn: operations.finish(conn, [operation.uuid], operations.CANCELLED, "The server is gone.")
        )

    def _hand_over(self, server: str, kind: str, mine: Sequence[Operation], rows: dict[str, Instance]) -> None:
        lease, host = self.tools.leases.seconds, rows[mine[0].instance_uuid].host
        self.tools.db.write(lambda conn: actions.hand_to_compute(conn, mine, server, lease, _EVENTS[kind], host))
        requests = [
            ActionRequest(
                operation=operation.uuid,
                kind=kind,
                instance=instances.to_object(rows[operation.instance_uuid]),
                arguments=operation.arguments,
                request_id=operation.request_id,
            )
            for operation in mine
        ]
        self.tools.compute.act(service_context(), server, requests)

    def _wait_or_fail(self, waiting: Sequence[Operation], rows: dict[str, Instance]) -> None:
        """Leave what waits for its host to the next sweep, and end what has waited too long."""
        if not waiting:
            return
        patience = self.tools.conf.conductor.compute_down_patience
        hosts = {operation.uuid: rows[operation.instance_uuid].host or "" for operation in waiting}
        late = self.tools.db.read(lambda conn: operations.overdue(conn, hosts, patience))
        for operation in waiting:
            if operation.uuid in late:
                host = rows[operation.instance_uuid].host
                message = f"The compute host {host} is down, for {patience:.0f} seconds now; try again when it is back."
                self._fail(operation, rows[operation.instance_uuid], message)

    # -- what computes report

    def finish(self, outcomes: Sequence[ActionOutcome]) -> None:
        """Publish how actions ended."""
        uuids = [outcome.operation for outcome in outcomes]
        found = {o.uuid: o for o in self.tools.db.read(lambda conn: operations.get_many(conn, uuids))}
        active = [o for o in outcomes if o.operation in found and found[o.operation].status == operations.ACTIVE]
        self._discard_strays(outcomes, found)
        if not active:
            return
        consumers = [outcome.consumer for outcome in active]
        rows = {row.uuid: row for row in self.tools.db.read(lambda conn: instances.get_many(conn, consumers))}
        deleted = [
            found[outcome.operation]
            for outcome in active
            if outcome.succeeded and outcome.kind == operations.DELETE and outcome.consumer in rows
        ]
        if deleted:
            self._finish_deletes(deleted, rows, domains_gone=True)
        for outcome in active:
            operation, row = found[outcome.operation], rows.get(outcome.consumer)
            if row is None:
                self._cancel(operation)
            elif not outcome.succeeded:
                self._fail(operation, row, outcome.reason, outcome.power_state, outcome.result)
            elif outcome.kind != operations.DELETE:
                self._complete(operation, row, outcome)

    def _discard_strays(self, outcomes: Sequence[ActionOutcome], found: dict[str, Operation]) -> None:
        """Remove images that came to be for operations that were given up meanwhile."""
        for outcome in outcomes:
            operation = found.get(outcome.operation)
            if operation is None or not outcome.succeeded or outcome.kind not in endings.IMAGING:
                continue
            if operation.status != operations.ACTIVE:
                self._discard(outcome.host, self.tools.db.read(partial(endings.strays, operation=operation)))

    def _complete(self, operation: Operation, row: Instance, outcome: ActionOutcome) -> None:
        offload_now = self.tools.conf.compute.shelved_offload_time == 0
        end = self.tools.db.write(lambda conn: endings.complete(conn, operation, outcome, offload_now))
        if end.is_done:
            with continuing(operation.request_id):
                LOG.info("%s done instance=%s host=%s", outcome.kind, row.uuid, row.host)
            done = replace(operation, kind=outcome.kind)
            notifications.emit(done, "end", row, state=end.vm_state or row.vm_state, task_state=None)
        if end.goes_on:
            self.tools.hint([operation.uuid])
        self._discard(outcome.host, end.images)

    def _fail(
        self,
        operation: Operation,
        row: Instance,
        message: str,
        power_state: int | None = None,
        result: Mapping[str, Any] | None = None,
    ) -> None:
        end = self.tools.db.write(lambda conn: endings.fail(conn, operation, message, power_state, result))
        if end.is_done:
            with continuing(operation.request_id):
                LOG.warning("%s failed instance=%s reason=%s", operation.kind, row.uuid, message)
            notifications.emit(operation, "error", row, task_state=None, fault=message)

    def _discard(self, host: str, images: Sequence[str]) -> None:
        """Have a compute remove what there is of images that nobody wants any more."""
        if not images:
            return
        down_time = self.tools.conf.service_down_time
        servers = self.tools.db.read(lambda conn: registry.compute_servers(conn, [host], down_time))
        if host in servers:
            self.tools.compute.discard_images(service_context(), servers[host][0], images)

    def _finish_deletes(self, claimed: Sequence[Operation], rows: dict[str, Instance], *, domains_gone: bool) -> None:
        done = set(self.tools.db.write(lambda conn: actions.finish_deletes(conn, claimed, domains_gone=domains_gone)))
        for operation in claimed:
            if operation.instance_uuid in done:
                row = rows[operation.instance_uuid]
                with continuing(operation.request_id):
                    LOG.info("deleted instance=%s host=%s", row.uuid, row.host)
                notifications.emit(operation, "end", row, state=states.DELETED, task_state=None)


def _part(operation: Operation, row: Instance) -> str:
    """Return what is to be done of an operation now, by the name of a kind: a server that is shelved gives its place
    back in the operation that has shelved it."""
    if operation.kind == operations.SHELVE and row.vm_state == states.SHELVED:
        return operations.SHELVE_OFFLOAD
    return operation.kind

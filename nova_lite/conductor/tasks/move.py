# SPDX-License-Identifier: Apache-2.0
"""Moves: a server goes to another host, or gets another size, one step after the other.

    resize, migrate   accepted ─ prepare ─ move_out ─ finish ─> waits to be confirmed (clean) or reverted
                                 (dest)    (source)   (dest)                          (discard, restore)
    live-migration    accepted ─ prepare ─ live_migrate ═ land ─ clean ─> done
    evacuate          accepted ─ rebuild ─> done; the dead host's half goes when that has cleaned up

Before the double line a move can be undone (discard at the destination, restore at the source), and a destination that
fails is tried elsewhere; after it, the server is where it is, and what cannot be tidied up is left to the reports of
what hosts still have. A step whose compute is down waits; if that lasts too long, what then happens never lets a guest
start while another one of the same server may run.

Costs of a move: 1 call to a scheduler, 1 claim, and for each step 1 message there, 1 question whether it is still to be
done, 1 report and 1 transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oslo_log import log

from nova_lite import exception, rpc
from nova_lite.conductor import notifications
from nova_lite.conductor.tasks import Task
from nova_lite.context import continuing, service_context
from nova_lite.db import instances, left_behind, moves, operations, registry, turns
from nova_lite.db.moves import Move
from nova_lite.db.operations import Operation
from nova_lite.objects import instance as states
from nova_lite.objects import move as steps
from nova_lite.objects.move import MoveOutcome, MoveRequest
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.selection import Selection

LOG = log.getLogger(__name__)

SOURCE, DESTINATION = "source", "destination"


@dataclass(frozen=True, slots=True)
class Step:
    """Which side does a step, and how it is shown: the event, and what the migration and the server are meanwhile."""

    side: str
    event: str
    status: str | None = None
    task_state: str | None = None


_COLD = {
    steps.PREPARE: Step(DESTINATION, "compute_prep_resize", "pre-migrating", states.RESIZE_PREP),
    steps.MOVE_OUT: Step(SOURCE, "compute_resize_instance", "migrating", states.RESIZE_MIGRATING),
    steps.FINISH: Step(DESTINATION, "compute_finish_resize", "post-migrating", states.RESIZE_FINISH),
}
_UNDOING = {
    steps.DISCARD: Step(DESTINATION, "compute_rollback_at_destination"),
    steps.RESTORE: Step(SOURCE, "compute_rollback_at_source"),
}
_STEPS: dict[str, dict[str, Step]] = {
    operations.RESIZE: _COLD | _UNDOING,
    operations.MIGRATE: _COLD | _UNDOING,
    operations.LIVE_MIGRATE: {
        steps.PREPARE: Step(DESTINATION, "compute_pre_live_migration", "preparing"),
        steps.LIVE_MIGRATE: Step(SOURCE, "compute_live_migration", "queued"),
        steps.LAND: Step(DESTINATION, "compute_post_live_migration_at_destination"),
        steps.CLEAN: Step(SOURCE, "compute_post_live_migration"),
    }
    | _UNDOING,
    operations.EVACUATE: {steps.REBUILD: Step(DESTINATION, "compute_rebuild_instance")} | _UNDOING,
    operations.CONFIRM: {steps.CLEAN: Step(SOURCE, "compute_confirm_resize")},
    operations.REVERT: {
        steps.DISCARD: Step(DESTINATION, "compute_revert_resize"),
        steps.RESTORE: Step(SOURCE, "compute_finish_revert_resize"),
    },
}
KINDS = tuple(_STEPS)

_FIRST = {
    operations.RESIZE: steps.PREPARE,
    operations.MIGRATE: steps.PREPARE,
    operations.LIVE_MIGRATE: steps.PREPARE,
    operations.EVACUATE: steps.REBUILD,
    operations.CONFIRM: steps.CLEAN,
    operations.REVERT: steps.DISCARD,
}
# Steps at which nothing is claimed yet: with no half on the books, they begin with a scheduler.
_CLAIMING = ("accepted", steps.PREPARE, steps.REBUILD)


class MoveTask(Task):
    """Operations of the kinds resize, migrate, live-migration, evacuate, confirmResize and revertResize."""

    def drive(self, claimed: Sequence[Operation]) -> None:
        found = self.tools.db.read(lambda conn: moves.gather(conn, claimed))
        self._cancel({operation.uuid for operation in claimed} - {move.operation.uuid for move in found})
        waiting = []
        for move in found:
            kind, step = move.operation.kind, move.operation.step
            if kind in (operations.CONFIRM, operations.REVERT):
                if step == "accepted":
                    notifications.emit(move.operation, "start", move.instance)
                    self._go_on(move, _FIRST[kind])
                else:
                    self._do(move)
            elif step in _CLAIMING and not move.has_half:
                waiting.append(move)
                if step == "accepted" and not move.attempts:
                    notifications.emit(move.operation, "start", move.instance)
            else:
                self._do(move)
        if waiting:
            self._schedule(waiting)
        self.tools.leases.let_go(operation.uuid for operation in claimed)

    def _cancel(self, uuids: set[str]) -> None:
        if uuids:
            message = "The server is gone."
            self.tools.db.write(lambda conn: operations.finish(conn, sorted(uuids), operations.CANCELLED, message))

    # -- scheduling

    def _schedule(self, waiting: Sequence[Move]) -> None:
        aborted = [move for move in waiting if move.migration.wish == steps.ABORT]
        for move in aborted:
            self._undone(move, "cancelled", "The live migration was aborted.")
        waiting = [move for move in waiting if move not in aborted]
        selections = self._select(waiting, [self._spec(move) for move in waiting]) if waiting else []
        for move, selection in zip(waiting, selections, strict=False):
            if selection.grant_id is None and selection.reason and self._may_stay(move):
                self._resize_here(move, selection.reason)
            else:
                self._selected(move, selection)

    def _select(self, waiting: Sequence[Move], specs: Sequence[RequestSpec]) -> Sequence[Selection]:
        """Ask a scheduler; with no answer, whoever claims the moves asks again, until they have waited too long."""
        try:
            return self.tools.scheduler.select_destinations(service_context(), specs)
        except (rpc.Error, exception.NovaLiteError) as error:
            LOG.warning("no scheduler answered moves=%d reason=%s", len(waiting), error)
        uuids = [move.operation.uuid for move in waiting]
        patience, owner = self.tools.conf.conductor.scheduler_patience, self.tools.leases.owner
        late = self.tools.db.read(lambda conn: operations.older(conn, uuids, patience))
        for move in waiting:
            if move.operation.uuid in late:
                self._undone(move, "error", f"No scheduler answered for {patience:.0f} seconds. Try again later.")
        self.tools.db.write(lambda conn: operations.release(conn, sorted(set(uuids) - late), owner))
        return []

    def _spec(self, move: Move) -> RequestSpec:
        left = self.tools.db.read(lambda conn: left_behind.hosts_with(conn, move.instance.uuid))
        tried = [attempt["host"] for attempt in move.attempts]
        spec = instances.to_request_spec(
            move.instance,
            move.group,
            excluded_hosts=sorted({move.migration.source_compute, *tried, *left}),
            request_id=move.operation.request_id,
        )
        return replace(
            spec,
            migration=move.migration.uuid,
            flavor=move.new_flavor,
            resources=move.new_flavor.resources,
            requested_host=move.operation.arguments.get("host"),
            requested_node=None,
        )

    def _may_stay(self, move: Move) -> bool:
        tried = {attempt["host"] for attempt in move.attempts}
        return (
            move.operation.kind == operations.RESIZE
            and not move.operation.arguments.get("host")
            and bool(self.tools.conf.conductor.allow_resize_to_same_host)
            and move.migration.source_compute not in tried
        )

    def _resize_here(self, move: Move, reason: str) -> None:
        """Ask for what the new size needs beyond the old one, on the host where the server is."""
        spec = self._spec(move)
        here = move.migration.source_compute
        spec = replace(
            spec,
            resources=move.new_flavor.resources.beyond(move.old_flavor.resources),
            requested_host=here,
            excluded_hosts=tuple(host for host in spec.excluded_hosts if host != here),
        )
        for selection in self._select([move], [spec]):
            if selection.grant_id is None and selection.reason:
                selection = replace(selection, reason=f"{reason} On its own host: {selection.reason}")
            self._selected(move, selection)

    def _selected(self, move: Move, selection: Selection) -> None:
        if selection.is_undecided:
            self.tools.db.write(lambda conn: operations.release(conn, [move.operation.uuid], self.tools.leases.owner))
        elif selection.superseded:
            LOG.info("scheduled by another conductor instance=%s", selection.consumer)
        elif selection.grant_id is None:
            self._no_valid_host(move, selection.reason or "")
        else:
            self._placed(move, selection)

    def _no_valid_host(self, move: Move, reason: str) -> None:
        if move.attempts:
            tried = "; ".join(f"{attempt['host']}: {attempt['reason']}" for attempt in move.attempts)
            reason = f"{reason} Tried before: {tried}."
        self._undone(move, "error", reason)

    def _placed(self, move: Move, selection: Selection) -> None:
        step, leases = _FIRST[move.operation.kind], self.tools.leases
        event = _STEPS[move.operation.kind][step].event

        def unit(conn: Any) -> bool:
            return turns.note_placed(conn, move, selection, step, leases.owner, leases.seconds, event)

        if not self.tools.db.write(unit):
            return
        with continuing(move.operation.request_id):
            LOG.info(
                "placed instance=%s host=%s for=%s fall_overs=%d",
                selection.consumer,
                selection.host,
                move.operation.kind,
                selection.fall_overs,
            )
        placed = self._again(move)
        if placed is not None:
            request = _request(placed, step)
            request = replace(request, grant_id=selection.grant_id or 0, node_id=selection.node_id or 0)
            self.tools.compute.move(service_context(), selection.server or "", [request])

    # -- steps

    def _do(self, move: Move) -> None:
        """Tell the compute of the present step to do it, if it is up; else wait, or see what can be done without."""
        step = _STEPS[move.operation.kind][move.operation.step]
        host = _host(move, step.side)
        down_time = self.tools.conf.service_down_time
        servers = self.tools.db.read(lambda conn: registry.compute_servers(conn, [host], down_time))
        server, up = servers.get(host, ("", False))
        if up:
            request = _request(move, move.operation.step)
            self.tools.compute.move(service_context(move.operation.request_id), server, [request])
            return
        uuid, patience = move.operation.uuid, self.tools.conf.conductor.compute_down_patience
        fenced = not server or host in self.tools.db.read(lambda conn: registry.fenced(conn, [host]))
        if fenced or uuid in self.tools.db.read(lambda conn: operations.overdue(conn, {uuid: host}, patience)):
            self._do_without(move, host, fenced)

    def _do_without(self, move: Move, host: str, fenced: bool) -> None:
        """Go on although the compute of the present step is down.

        :param fenced: somebody has made sure that nothing runs there any more.
        """
        kind, step = move.operation.kind, move.operation.step
        reason = f"The compute host {host} is down."
        if step in (steps.PREPARE, steps.REBUILD):
            self._try_elsewhere(move, host, reason)
        elif step == steps.MOVE_OUT:
            self._undo(move, f"{reason} The server stays there.")
        elif step == steps.LIVE_MIGRATE:
            self._ask_destination(move, reason)
        elif step == steps.FINISH:
            if fenced:
                self._undo(move, reason)
            else:
                self._lost(
                    move, f"{reason} It may have taken the server over; when it is certainly off, start it here."
                )
        elif step in (steps.LAND, steps.CLEAN):
            self._leave_behind(move, f"{reason} What is left there goes when it returns.")
        elif step == steps.DISCARD and kind == operations.REVERT and not fenced:
            self._stay_resized(move, f"{reason} The server may run there; revert when it is back, or force it down.")
        elif step == steps.DISCARD:
            self._go_on(move, steps.RESTORE)
        elif kind == operations.REVERT:
            self.tools.db.write(lambda conn: turns.revert(conn, move, states.NOSTATE, reason))
        else:
            self._undone(move, *_undoing(move, reason))

    def _ask_destination(self, move: Move, reason: str) -> None:
        """The source of a live migration is gone: whether the guest has come over is for the destination to say."""
        host = move.migration.dest_compute or ""
        servers = self.tools.db.read(
            lambda conn: registry.compute_servers(conn, [host], self.tools.conf.service_down_time)
        )
        server, up = servers.get(host, ("", False))
        if not up:
            if not server or host in self.tools.db.read(lambda conn: registry.fenced(conn, [host])):
                self._undo(move, f"{reason} So is {host}.")
            return
        try:
            there = self.tools.compute.domains(service_context(), server)
        except (rpc.Error, exception.NovaLiteError) as error:
            LOG.warning("destination does not answer instance=%s reason=%s", move.instance.uuid, error)
            return
        node, came = move.migration.dest_node, {states.RUNNING}
        if move.migration.old_vm_state == states.PAUSED:
            came.add(states.POWER_PAUSED)
        if any((d.uuid, d.node) == (move.instance.uuid, node) and d.power_state in came for d in there):
            self._switch_over(move)
        else:
            self._undo(move, f"{reason} The server stays there.")

    def _go_on(self, move: Move, step: str, arguments: dict[str, Any] | None = None) -> None:
        """Begin the next step, and tell its compute."""
        following, leases = _STEPS[move.operation.kind][step], self.tools.leases
        host = _host(move, following.side)

        def unit(conn: Any) -> bool:
            return turns.next_step(
                conn,
                move,
                step,
                leases.owner,
                leases.seconds,
                following.event,
                host,
                status=following.status,
                task_state=following.task_state,
                arguments=arguments,
            )

        if self.tools.db.write(unit):
            again = self._again(move)
            if again is not None:
                self._do(again)

    def _again(self, move: Move) -> Move | None:
        """Read the move as it is by now."""
        uuid = move.operation.uuid
        found = self.tools.db.read(lambda conn: moves.gather(conn, operations.get_many(conn, [uuid])))
        return next((each for each in found if each.operation.status == operations.ACTIVE), None)

    # -- what computes report

    def begin_step(self, operation: str, step: str, server: str) -> bool:
        """Let a compute begin a step that is still to be done."""
        lease = self.tools.conf.conductor.lease
        return self.tools.db.write(lambda conn: turns.begin_step(conn, operation, step, server, lease))

    def refused(self, claims: Sequence[tuple[str, str]]) -> None:
        """Schedule moves again whose claims were refused: (operation, migration) of each."""
        waiting = self.tools.db.write(lambda conn: turns.schedule_again(conn, claims))
        self.tools.hint(waiting)

    def finish(self, outcomes: Sequence[MoveOutcome]) -> None:
        """Go on from how steps ended. What is reported twice, or of a step that is over, changes nothing."""
        uuids = [outcome.operation for outcome in outcomes]
        found = {
            move.operation.uuid: move
            for move in self.tools.db.read(lambda conn: moves.gather(conn, operations.get_many(conn, uuids)))
        }
        for outcome in outcomes:
            move = found.get(outcome.operation)
            if move is None or (move.operation.status, move.operation.step) != (operations.ACTIVE, outcome.step):
                continue
            with continuing(move.operation.request_id):
                if outcome.succeeded:
                    self._succeeded[outcome.step](self, move, outcome)
                else:
                    LOG.warning(
                        "%s failed instance=%s host=%s reason=%s",
                        outcome.step,
                        outcome.consumer,
                        outcome.host,
                        outcome.reason,
                    )
                    self._failed(move, outcome)

    def _prepared(self, move: Move, outcome: MoveOutcome) -> None:
        if move.migration.wish == steps.ABORT:
            self._undo(move, "The live migration was aborted.", "cancelled", outcome.answer)
            return
        live = move.operation.kind == operations.LIVE_MIGRATE
        arguments = {**move.operation.arguments, "destination": outcome.answer}
        self._go_on(move, steps.LIVE_MIGRATE if live else steps.MOVE_OUT, arguments)

    def _moved_out(self, move: Move, outcome: MoveOutcome) -> None:
        self._go_on(move, steps.FINISH)

    def _finished(self, move: Move, outcome: MoveOutcome) -> None:
        if self.tools.db.write(lambda conn: turns.finish_resize(conn, move, outcome.power_state, outcome.addresses)):
            self._told(move, "end", state=states.RESIZED, host=move.migration.dest_compute)

    def _switched(self, move: Move, outcome: MoveOutcome) -> None:
        self._switch_over(move)

    def _switch_over(self, move: Move) -> None:
        leases, event = self.tools.leases, _STEPS[move.operation.kind][steps.LAND].event

        def unit(conn: Any) -> bool:
            return turns.switch_over(conn, move, steps.LAND, leases.owner, leases.seconds, event)

        if self.tools.db.write(unit):
            again = self._again(move)
            if again is not None:
                self._do(again)

    def _landed(self, move: Move, outcome: MoveOutcome) -> None:
        self._go_on(move, steps.CLEAN, {**move.operation.arguments, "power_state": outcome.power_state})

    def _cleaned(self, move: Move, outcome: MoveOutcome) -> None:
        self._leave_behind(move, None)

    def _rebuilt(self, move: Move, outcome: MoveOutcome) -> None:
        shared = bool(outcome.answer.get("shared"))
        if self.tools.db.write(
            lambda conn: turns.finish_evacuation(conn, move, outcome.power_state, outcome.addresses, shared)
        ):
            self._told(move, "end", host=move.migration.dest_compute)

    def _discarded(self, move: Move, outcome: MoveOutcome) -> None:
        if move.operation.kind == operations.EVACUATE:
            self._undone(move, *_undoing(move, ""))
        else:
            self._go_on(move, steps.RESTORE)

    def _restored(self, move: Move, outcome: MoveOutcome) -> None:
        if move.operation.kind == operations.REVERT:
            if self.tools.db.write(lambda conn: turns.revert(conn, move, outcome.power_state)):
                self._told(move, "end", host=move.migration.source_compute)
        else:
            self._undone(move, *_undoing(move, ""), outcome.power_state)

    _succeeded: dict[str, Callable[[MoveTask, Move, MoveOutcome], None]] = {
        steps.PREPARE: _prepared,
        steps.MOVE_OUT: _moved_out,
        steps.FINISH: _finished,
        steps.LIVE_MIGRATE: _switched,
        steps.LAND: _landed,
        steps.CLEAN: _cleaned,
        steps.REBUILD: _rebuilt,
        steps.DISCARD: _discarded,
        steps.RESTORE: _restored,
    }

    def _failed(self, move: Move, outcome: MoveOutcome) -> None:
        kind, step, reason = move.operation.kind, outcome.step, outcome.reason
        if step in (steps.PREPARE, steps.REBUILD):
            self._try_elsewhere(move, outcome.host, reason)
        elif step in (steps.MOVE_OUT, steps.FINISH, steps.LIVE_MIGRATE):
            self._undo(move, reason, "cancelled" if outcome.aborted else "error")
        elif step == steps.LAND:
            self._go_on(move, steps.CLEAN, {**move.operation.arguments, "left": reason})
        elif step == steps.CLEAN:
            self._leave_behind(move, reason)
        elif step == steps.DISCARD and kind == operations.REVERT:
            self._stay_resized(move, reason)
        elif step == steps.DISCARD and move.operation.arguments.get("may_run_there"):
            self._lost(move, f"{_undoing(move, '')[1]} It could not be undone: {reason}")
        elif step == steps.DISCARD:
            self._discarded(move, outcome)
        elif kind == operations.REVERT:
            if self.tools.db.write(lambda conn: turns.revert(conn, move, outcome.power_state, reason)):
                self._told(move, "error", state=states.ERROR, fault=reason)
        else:
            self._lost(move, f"{_undoing(move, '')[1]} It could not be undone: {reason}")

    # -- ends

    def _try_elsewhere(self, move: Move, host: str, reason: str) -> None:
        """A destination failed before anything happened to the server: try another one."""
        attempts = [*move.attempts, {"host": host, "reason": reason}]
        if move.operation.arguments.get("host") or len(attempts) >= self.tools.conf.conductor.max_attempts:
            tried = "; ".join(f"{attempt['host']}: {attempt['reason']}" for attempt in attempts)
            self._undone(move, "error", f"The server could not be moved. {tried}")
        elif self.tools.db.write(lambda conn: turns.retry_elsewhere(conn, move, host, reason)):
            self.tools.hint([move.operation.uuid])

    def _undo(self, move: Move, message: str, status: str = "error", destination: dict[str, Any] | None = None) -> None:
        """Set out to bring things back to what they were before."""
        arguments = {
            **move.operation.arguments,
            "undoing": [status, message],
            "may_run_there": move.operation.step == steps.FINISH,
        }
        if destination is not None:
            arguments["destination"] = destination
        self._go_on(move, steps.DISCARD, arguments)

    def _undone(self, move: Move, status: str, message: str, power_state: int | None = None) -> None:
        if self.tools.db.write(lambda conn: turns.undo(conn, move, status, message, power_state)):
            self._told(move, "error", task_state=None, fault=message)

    def _lost(self, move: Move, message: str) -> None:
        if self.tools.db.write(lambda conn: turns.fail(conn, move, message)):
            self._told(move, "error", state=states.ERROR, fault=message)

    def _stay_resized(self, move: Move, message: str) -> None:
        if self.tools.db.write(lambda conn: turns.stay_resized(conn, move, message)):
            self._told(move, "error", task_state=None, fault=message)

    def _leave_behind(self, move: Move, message: str | None) -> None:
        """End a move that has happened, whatever could not be tidied up."""
        if move.operation.kind == operations.CONFIRM:
            done = self.tools.db.write(lambda conn: turns.confirm(conn, move, message))
        else:
            message = message or move.operation.arguments.get("left")
            power_state = move.operation.arguments.get("power_state")
            done = self.tools.db.write(lambda conn: turns.complete(conn, move, power_state, message))
        if done:
            self._told(move, "end", task_state=None)

    def _told(self, move: Move, phase: str, **changed: Any) -> None:
        with continuing(move.operation.request_id):
            reason = changed.get("fault")
            LOG.info(
                "%s %s instance=%s from=%s to=%s%s",
                move.operation.kind,
                phase,
                move.instance.uuid,
                move.migration.source_compute,
                move.migration.dest_compute,
                f" reason={reason}" if reason else "",
            )
        notifications.emit(move.operation, phase, move.instance, **changed)


def _host(move: Move, side: str) -> str:
    return move.migration.source_compute if side == SOURCE else move.migration.dest_compute or ""


def _undoing(move: Move, reason: str) -> tuple[str, str]:
    """Return the status and the message with which a move that is being undone ends."""
    status, message = move.operation.arguments.get("undoing", ("error", reason))
    return str(status), str(message)


def _request(move: Move, step: str) -> MoveRequest:
    """Make what a compute is told: the server as it is, or is about to be, on its side."""
    migration = move.migration
    at_source = _STEPS[move.operation.kind][step].side == SOURCE
    instance = instances.to_object(
        move.instance,
        migration.source_compute if at_source else migration.dest_compute,
        migration.source_node if at_source else migration.dest_node,
    )
    flavor = move.old_flavor if at_source else move.new_flavor
    return MoveRequest(
        operation=move.operation.uuid,
        step=step,
        migration=migration.uuid,
        instance=replace(instance, flavor=flavor),
        power_on=migration.old_vm_state != states.STOPPED and move.operation.arguments.get("target_state") != "stopped",
        destination=move.operation.arguments.get("destination") or {},
        arguments={**move.operation.arguments, "live": migration.type == moves.LIVE, "stays": migration.stays},
        request_id=move.operation.request_id,
    )


def removal(operation: Operation, row: instances.Instance, host: str, node: str) -> MoveRequest:
    """Make the request to remove what another host has of a server that is being deleted."""
    instance = instances.to_object(row, host, node)
    return MoveRequest("", steps.DISCARD, "", instance, request_id=operation.request_id)

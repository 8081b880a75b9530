# SPDX-License-Identifier: Apache-2.0
"""Drives drains: a turn at a time, from what the rows say, so that any conductor can take the next one."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log

from nova_lite import exception
from nova_lite.db import drains, moves, operations
from nova_lite.db.drains import Drain, State
from nova_lite.db.instances import Caller, Instance
from nova_lite.db.session import Database
from nova_lite.objects import instance as states

LOG = log.getLogger(__name__)

# How servers are moved, by what they are; others are left to a person.
_KINDS = {
    states.ACTIVE: operations.LIVE_MIGRATE,
    states.PAUSED: operations.LIVE_MIGRATE,
    states.STOPPED: operations.MIGRATE,
}


class Drainer:
    """Takes the turns of one conductor process."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database, owner: str, hint: Callable[[Sequence[str]], None]) -> None:
        self._conf = conf
        self._db = db
        self._owner = owner
        self._hint = hint

    def turn(self) -> None:
        """Take one turn of every drain that nobody else drives."""
        lease = self._conf.conductor.lease
        for drain in self._db.write(lambda conn: drains.claim(conn, self._owner, lease)):
            self._turn(drain)

    def _turn(self, drain: Drain) -> None:
        state = self._db.read(lambda conn: drains.state(conn, drain))
        if not state.servers and not state.moving:
            self._db.write(lambda conn: drains.complete(conn, drain))
            LOG.info("drained host=%s", drain.host)
            return
        self._confirm(drain, state)
        under_way = {move.instance_uuid for move in state.moving if move.status != "finished"}
        waiting = {move.instance_uuid for move in state.moving}
        failures = Counter(move.instance_uuid for move in state.failed)
        moves_before = Counter(move.instance_uuid for move in state.ended)
        reasons = {move.instance_uuid: move.message for move in state.failed}
        free = drain.parallel - len(under_way)
        blocked = []
        for server in state.servers:
            if server.uuid in waiting:
                continue
            if server.task_state is None and server.vm_state not in _KINDS:
                blocked.append(f"{server.uuid} is {server.vm_state}")
            elif failures[server.uuid] >= self._conf.conductor.max_attempts:
                blocked.append(f"{server.uuid}: {reasons[server.uuid]}")
            elif server.task_state is None and free > 0 and self._move(drain, server, moves_before[server.uuid]):
                free -= 1
        message = "; ".join(blocked) or None
        self._db.write(lambda conn: drains.note(conn, drain, message))

    def _confirm(self, drain: Drain, state: State) -> None:
        """Confirm the moves of stopped servers that this drain has begun."""
        finished = [move for move in state.moving if move.status == "finished"]
        for move in self._db.read(lambda conn: drains.began(conn, drain, finished)):
            caller = self._caller(drain, move.project_id, move.user_id, f"confirm {move.uuid}")
            self._begin(partial(moves.end, uuid=move.instance_uuid, kind=operations.CONFIRM, caller=caller))

    def _move(self, drain: Drain, server: Instance, moves_before: int) -> bool:
        kind = _KINDS[server.vm_state]
        caller = self._caller(drain, server.project_id, server.user_id, f"{server.uuid} {moves_before}")
        told = {"drain": drain.uuid, "block_migration": "auto"}

        def unit(conn: sa.Connection) -> str:
            drains.check_turn(conn, drain, self._owner)
            state = (server.vm_state,)
            return moves.begin(conn, self._conf, server.uuid, kind=kind, caller=caller, vm_states=state, arguments=told)

        return self._begin(unit)

    def _caller(self, drain: Drain, project_id: str, user_id: str, what: str) -> Caller:
        """Ask in the owner's name; equal requests have equal ids, so that none is taken twice."""
        request_id = f"req-{uuid.uuid5(uuid.UUID(drain.uuid), what)}"
        return Caller(project_id, user_id, request_id, may_override_lock=True)

    def _begin(self, unit: Callable[..., str]) -> bool:
        try:
            operation = self._db.write(unit)
        except exception.NovaLiteError as error:
            LOG.info("not moved now reason=%s", error)
            return False
        self._hint([operation])
        return True

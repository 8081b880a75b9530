# SPDX-License-Identifier: Apache-2.0
"""How actions on servers end: what each kind of operation writes when its compute has done it, or could not.

Everything that an end changes is written in its one transaction. What is to be done outside of the database afterwards
is returned (``End``); should a process die before it has done that, nothing is wrong, only something is left over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from nova_lite.db import actions, images, operations, rebuilds, shelves, snapshots
from nova_lite.db.operations import Operation
from nova_lite.objects import instance as states
from nova_lite.objects.action import ActionOutcome

# What a server is after an action that says so by itself.
_AFTERWARDS = {
    operations.STOP: states.STOPPED,
    operations.START: states.ACTIVE,
    operations.REBOOT: states.ACTIVE,
    operations.PAUSE: states.PAUSED,
    operations.UNPAUSE: states.ACTIVE,
    operations.SUSPEND: states.SUSPENDED,
    operations.RESUME: states.ACTIVE,
    operations.RESCUE: states.RESCUED,
    operations.UNRESCUE: states.ACTIVE,
}
#: Kinds that make an image: what was uploaded for one that has been given up is nobody's.
IMAGING = (operations.CREATE_IMAGE, operations.CREATE_BACKUP, operations.SHELVE)


@dataclass(frozen=True, slots=True)
class End:
    """is_done tells whether the end was still to be written. vm_state is what the server is now, if it is new.

    images are those whose content is to be removed from where images are kept. goes_on tells that the operation has
    not ended, and waits to be driven further.
    """

    is_done: bool
    vm_state: str | None = None
    images: tuple[str, ...] = ()
    goes_on: bool = False


def complete(conn: sa.Connection, operation: Operation, outcome: ActionOutcome, offload_now: bool) -> End:
    """Publish what an action has come to that a compute has done.

    :param offload_now: whether servers give their places back as soon as they are shelved.
    """
    if outcome.kind == operations.SHELVE:
        return _shelved(conn, operation, outcome, offload_now)
    if outcome.kind == operations.SHELVE_OFFLOAD:
        return End(shelves.publish_offloaded(conn, operation), states.SHELVED_OFFLOADED)
    if operation.kind == operations.UNSHELVE:
        return _unshelved(conn, operation, outcome)
    if operation.kind == operations.REBUILD:
        return _rebuilt(conn, operation, outcome)
    if operation.kind in IMAGING:
        return _imaged(conn, operation, outcome)
    vm_state = _AFTERWARDS[operation.kind]
    return End(actions.complete(conn, operation, outcome.power_state, vm_state), vm_state)


def fail(
    conn: sa.Connection,
    operation: Operation,
    message: str,
    power_state: int | None = None,
    result: Mapping[str, Any] | None = None,
) -> End:
    """End an action that failed: the server is what it was, or in ERROR if that cannot be said.

    :param power_state: what the hypervisor shows afterwards, None if it was not asked, the host being down.
    :param result: what the compute tells of the failure.
    """
    if operation.kind == operations.DELETE:
        return End(actions.fail(conn, operation, message, power_state, error=True))
    if operation.kind == operations.REBUILD:
        # A host that is down may have begun, and then nobody knows whether the old guest is still there.
        untouched = (
            (result or {}).get("untouched") if power_state is not None else not _may_have_begun(operation, power_state)
        )
        before = rebuilds.before(operation) if untouched else {}
        return End(actions.fail(conn, operation, message, power_state, error=not untouched, **before))
    if operation.kind in IMAGING:
        return End(snapshots.fail(conn, operation, message, power_state))
    # Which of its two definitions a server has on a host that is down cannot be said; another rescue finds out.
    unclear = operation.kind in (operations.RESCUE, operations.UNRESCUE) and _may_have_begun(operation, power_state)
    return End(actions.fail(conn, operation, message, power_state, error=unclear))


def _may_have_begun(operation: Operation, power_state: int | None) -> bool:
    """Tell whether a host that is down may have done a part of it."""
    return power_state is None and operation.step != "accepted"


def _rebuilt(conn: sa.Connection, operation: Operation, outcome: ActionOutcome) -> End:
    vm_state = states.STOPPED if operation.arguments["stopped"] else states.ACTIVE
    addresses = json.dumps(outcome.result.get("addresses", {}))
    done = actions.complete(conn, operation, outcome.power_state, vm_state, addresses=addresses, **actions.LAUNCHED_NOW)
    return End(done, vm_state)


def _imaged(conn: sa.Connection, operation: Operation, outcome: ActionOutcome) -> End:
    if not snapshots.complete(conn, operation, outcome.power_state, outcome.result.get("content")):
        return _stray(conn, operation)
    old = snapshots.rotate(conn, operation) if operation.kind == operations.CREATE_BACKUP else []
    return End(True, images=tuple(old))


def _shelved(conn: sa.Connection, operation: Operation, outcome: ActionOutcome, offload_now: bool) -> End:
    content, power_state = outcome.result.get("content"), outcome.power_state
    if not shelves.publish_shelved(conn, operation, power_state, content, go_on=offload_now):
        return _stray(conn, operation)
    return End(True, states.SHELVED, goes_on=offload_now)


def _unshelved(conn: sa.Connection, operation: Operation, outcome: ActionOutcome) -> End:
    if not shelves.publish_unshelved(conn, operation, outcome.power_state):
        return End(False)
    return End(True, states.ACTIVE, images=(str(operation.arguments["image"]["id"]),))


def _stray(conn: sa.Connection, operation: Operation) -> End:
    now = operations.get(conn, operation.uuid)
    return End(False, images=strays(conn, now) if now is not None else ())


def strays(conn: sa.Connection, operation: Operation) -> tuple[str, ...]:
    """Return the images whose content has come for an operation that was given up meanwhile, and that nobody has."""
    if operation.status in (operations.ACTIVE, operations.SUCCEEDED):
        return ()
    image_id = str(operation.arguments["image_id"])
    if operation.arguments["stored"]:
        return () if images.exists(conn, image_id) else (image_id,)
    return (image_id,) if operation.status == operations.CANCELLED else ()

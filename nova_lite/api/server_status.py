# SPDX-License-Identifier: Apache-2.0
"""A server's status, the one word that users see: made of vm_state and task_state, and translated back for filters."""

from __future__ import annotations

from nova_lite.db.instance_search import StateMatch
from nova_lite.objects import instance as states

# vm_state -> the status when no task below says otherwise.
_BY_STATE = {
    states.ACTIVE: "ACTIVE",
    states.BUILDING: "BUILD",
    states.STOPPED: "SHUTOFF",
    states.PAUSED: "PAUSED",
    states.ERROR: "ERROR",
    states.DELETED: "DELETED",
    states.RESIZED: "VERIFY_RESIZE",
    states.SUSPENDED: "SUSPENDED",
    states.RESCUED: "RESCUE",
    "soft-delete": "SOFT_DELETED",
    states.SHELVED: "SHELVED",
    states.SHELVED_OFFLOADED: "SHELVED_OFFLOADED",
}

_REBUILD = dict.fromkeys(("rebuilding", "rebuild_block_device_mapping", "rebuild_spawning"), "REBUILD")
_RESIZE = dict.fromkeys((states.RESIZE_PREP, states.RESIZE_MIGRATING, states.RESIZE_FINISH), "RESIZE")
_BY_TASK: dict[str, dict[str, str]] = {
    states.ACTIVE: {
        states.REBOOTING: "REBOOT",
        states.REBOOTING_HARD: "HARD_REBOOT",
        "updating_password": "PASSWORD",
        states.MIGRATING: "MIGRATING",
        **_REBUILD,
        **_RESIZE,
    },
    states.STOPPED: {**_REBUILD, **_RESIZE},
    states.RESIZED: {states.RESIZE_REVERTING: "REVERT_RESIZE"},
    states.PAUSED: {states.MIGRATING: "MIGRATING"},
    states.ERROR: _REBUILD,
}

UNKNOWN = "UNKNOWN"
#: Those in which a server's progress is shown.
IN_PROGRESS = frozenset(("ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING"))
#: Those in which a server's fault is shown.
FAULTY = frozenset(("ERROR", "DELETED"))


def status_of(vm_state: str, task_state: str | None, deleted: int = 0) -> str:
    """Return the status of a server."""
    if deleted:
        return "DELETED"
    by_task = _BY_TASK.get(vm_state)
    if by_task and task_state in by_task:
        return by_task[task_state]
    return _BY_STATE.get(vm_state, UNKNOWN)


def matches_of(status: str) -> list[StateMatch]:
    """Return the states that a status stands for, in any case of letters; none if there is no such status."""
    wanted = status.upper()
    found = [
        StateMatch(vm_state, except_tasks=tuple(_BY_TASK.get(vm_state, ())))
        for vm_state, shown in _BY_STATE.items()
        if shown == wanted
    ]
    for vm_state, by_task in _BY_TASK.items():
        tasks = tuple(task for task, shown in by_task.items() if shown == wanted)
        if tasks:
            found.append(StateMatch(vm_state, tasks))
    return found

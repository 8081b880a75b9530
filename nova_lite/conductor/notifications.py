# SPDX-License-Identifier: Apache-2.0
"""Notifications of a server's life, as operators' tools listen for them: instance.<action>.<phase>."""

from __future__ import annotations

from typing import Any

from nova_lite import rpc
from nova_lite.context import service_context
from nova_lite.db.instances import Instance
from nova_lite.db.operations import Operation

# What Nova calls the actions whose kind reads otherwise.
_NAMES = {
    "start": "power_on",
    "stop": "power_off",
    "createImage": "snapshot",
    "createBackup": "snapshot",
    "shelveOffload": "shelve_offload",
}


def emit(operation: Operation, phase: str, row: Instance, **changed: Any) -> None:
    """Tell that an operation on a server began (start), ended (end) or failed (error).

    :param changed: what of the payload differs from the row by now.
    """
    payload: dict[str, Any] = {
        "uuid": row.uuid,
        "name": row.name,
        "project_id": row.project_id,
        "user_id": row.user_id,
        "state": row.vm_state,
        "task_state": row.task_state,
        "host": row.host,
        "flavor": row.flavorid,
        "image": row.image_ref,
    }
    payload.update(changed)
    event = f"instance.{_NAMES.get(operation.kind, operation.kind)}.{phase}"
    rpc.notify(service_context(operation.request_id), event, payload, error=phase == "error")

# SPDX-License-Identifier: Apache-2.0
"""Operations and their steps as the API shows them: as the actions on a server, and their events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nova_lite.api.microversion import Version
from nova_lite.api.views import links
from nova_lite.api.views.servers import host_id
from nova_lite.db.operations import Operation, Step


@dataclass(frozen=True, slots=True)
class Sight:
    """What the caller may see of events beyond their names, times and results."""

    traceback: bool
    host: bool
    host_id: bool
    details: bool


def action(operation: Operation, version: Version) -> dict[str, Any]:
    """Show an action without its events."""
    shown = {
        "action": operation.kind,
        "instance_uuid": operation.instance_uuid,
        "request_id": operation.request_id,
        "user_id": operation.user_id,
        "project_id": operation.project_id,
        "start_time": links.precise(operation.created_at),
        "message": operation.message,
    }
    if version >= Version(2, 58):
        shown["updated_at"] = links.precise(operation.updated_at)
    return shown


def event(step: Step, project_id: str, sight: Sight) -> dict[str, Any]:
    """Show an event of an action."""
    shown: dict[str, Any] = {
        "event": step.event,
        "start_time": links.precise(step.started_at),
        "finish_time": links.precise(step.finished_at),
        "result": step.result,
    }
    if sight.traceback:
        shown["traceback"] = None
    if sight.host:
        shown["host"] = step.host or ""
    if sight.host_id:
        shown["hostId"] = host_id(project_id, step.host)
    if sight.details:
        shown["details"] = step.details
    return shown

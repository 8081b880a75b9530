# SPDX-License-Identifier: Apache-2.0
"""Work on a server that exists: what the conductor asks of a compute service, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nova_lite.objects.instance import Instance


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """Do this to the instance. kind is the operation's kind (stop, start, reboot, delete, ...)."""

    operation: str
    kind: str
    instance: Instance
    arguments: dict[str, Any] = field(default_factory=dict)
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """How the work ended, with the power state that the hypervisor shows afterwards.

    result is what the kind tells beside that; "untouched" of a failure says that nothing was done to the server.
    """

    operation: str
    kind: str
    consumer: str
    host: str
    succeeded: bool
    power_state: int = 0
    reason: str = ""
    result: dict[str, Any] = field(default_factory=dict)

# SPDX-License-Identifier: Apache-2.0
"""The conversation between conductor and compute about a move: which step to do, and how it ended.

A move goes through steps, each done by the compute of the source or of the destination. Every step can be repeated:
it looks at what is already true and goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nova_lite.objects.instance import Instance

# The steps, by the side that does them.
PREPARE = "prepare"  # destination: claim the grant, make room
MOVE_OUT = "move_out"  # source: power the guest off, bring its disks over
FINISH = "finish"  # destination: make the domain
LIVE_MIGRATE = "live_migrate"  # source: hand the running guest over
LAND = "land"  # destination: make a domain that has come a lasting one
REBUILD = "rebuild"  # destination: claim the grant, make the server anew or from shared disks
CLEAN = "clean"  # source: remove what the server has left behind
DISCARD = "discard"  # destination: remove what was made for a server that does not come
RESTORE = "restore"  # source: take the server up again

# What may be wished of a live migration that runs.
ABORT, FORCE_COMPLETE = "abort", "force-complete"


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """Do this step. instance has the host, node and flavor that it has, or is about to have, on the doing side.

    destination is what the destination's driver answered to "prepare": JSON, known to drivers alone. grant_id and
    node_id are set for a step that begins with a claim, unless the claim has been made before.
    """

    operation: str
    step: str
    migration: str
    instance: Instance
    power_on: bool = True
    destination: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    grant_id: int = 0
    node_id: int = 0
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class MoveOutcome:
    """How a step ended. answer is what the next steps must know: of "prepare", the destination.

    aborted tells that a live migration was ended because it was wished.
    """

    operation: str
    step: str
    consumer: str
    host: str
    succeeded: bool
    reason: str = ""
    aborted: bool = False
    power_state: int = 0
    answer: dict[str, Any] = field(default_factory=dict)
    addresses: dict[str, list[dict[str, Any]]] | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a live migration has come, in bytes."""

    memory_total: int = 0
    memory_processed: int = 0
    memory_remaining: int = 0
    disk_total: int = 0
    disk_processed: int = 0
    disk_remaining: int = 0

# SPDX-License-Identifier: Apache-2.0
"""The conversation between conductor and compute about a build: the request, the claim, the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nova_lite.objects.instance import Instance


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """Build this instance with this grant. operation is the uuid of the operation that it belongs to."""

    operation: str
    grant_id: int
    node_id: int
    instance: Instance
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """Turn a grant into an allocation.

    server is the RPC server that will work on the operation from now on, step what it will be at. migration is the move
    that the grant is for, "" for a boot.
    """

    operation: str
    consumer: str
    grant_id: int
    node_id: int
    server: str
    migration: str = ""
    step: str = "building"


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """granted tells whether the allocation stands; if not, reason says why, and the build goes elsewhere."""

    operation: str
    consumer: str
    granted: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BuildOutcome:
    """How a build ended on its host. reason is set when it failed; retriable is False when no host would do."""

    operation: str
    consumer: str
    host: str
    succeeded: bool
    power_state: int = 0
    reason: str = ""
    retriable: bool = True
    addresses: dict[str, list[dict[str, Any]]] | None = None

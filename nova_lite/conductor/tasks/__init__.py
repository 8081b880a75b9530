# SPDX-License-Identifier: Apache-2.0
"""Tasks: how each kind of operation is driven, one module per kind or family of kinds.

A task is handed claimed operations in batches, at any step: from a hint of the api, or from the sweep that took them
over. It looks at what is already true (grant, allocation, where the server is) and goes on from there; so every step
can be repeated.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oslo_config import cfg

from nova_lite.compute.rpcapi import ComputeAPI
from nova_lite.conductor.leases import Leases
from nova_lite.db.operations import Operation
from nova_lite.db.session import Database
from nova_lite.scheduler.rpcapi import SchedulerAPI


@dataclass(frozen=True, slots=True)
class Tools:
    """What tasks work with. hint tells this process' own queue to look at operations again."""

    conf: cfg.ConfigOpts
    db: Database
    leases: Leases
    scheduler: SchedulerAPI
    compute: ComputeAPI
    hint: Callable[[Sequence[str]], None]


class Task(abc.ABC):
    """Drives operations of some kinds."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    @abc.abstractmethod
    def drive(self, claimed: Sequence[Operation]) -> None:
        """Take the operations, which this process holds, one step further, and let go of those leases."""

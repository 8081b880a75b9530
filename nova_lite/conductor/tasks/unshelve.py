# SPDX-License-Identifier: Apache-2.0
"""Unshelving: a server that has kept its place is started there; one that has none is built like a new one."""

from __future__ import annotations

from collections.abc import Sequence

from nova_lite.conductor.tasks import Task, Tools
from nova_lite.db.operations import Operation


class UnshelveTask(Task):
    """Operations of the kind unshelve: hands each to the task that does such work."""

    def __init__(self, tools: Tools, builds: Task, actions: Task) -> None:
        super().__init__(tools)
        self._builds = builds
        self._actions = actions

    def drive(self, claimed: Sequence[Operation]) -> None:
        for task, is_away in ((self._builds, True), (self._actions, False)):
            mine = [operation for operation in claimed if operation.arguments["offloaded"] is is_away]
            if mine:
                task.drive(mine)

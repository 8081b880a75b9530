# SPDX-License-Identifier: Apache-2.0
"""What this compute process is working on: the operations whose leases its heartbeat renews."""

from __future__ import annotations

import threading
from collections import OrderedDict

# A build that was claimed waits for seconds at most, a delete overtakes it at once: this many are plenty.
_DOOMED_KEPT = 10000


class Work:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: set[str] = set()
        self._doomed: OrderedDict[str, None] = OrderedDict()

    def begin(self, operation: str) -> bool:
        """Note the operation; returns False if it is being worked on already."""
        with self._lock:
            if operation in self._operations:
                return False
            self._operations.add(operation)
            return True

    def end(self, operation: str) -> None:
        with self._lock:
            self._operations.discard(operation)

    def operations(self) -> list[str]:
        with self._lock:
            return sorted(self._operations)

    def doom(self, uuid: str) -> None:
        """Note that an instance is being deleted: a build of it that still waits must not make a domain."""
        with self._lock:
            self._doomed[uuid] = None
            while len(self._doomed) > _DOOMED_KEPT:
                self._doomed.popitem(last=False)

    def is_doomed(self, uuid: str) -> bool:
        with self._lock:
            return uuid in self._doomed

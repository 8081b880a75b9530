# SPDX-License-Identifier: Apache-2.0
"""One lock an instance, which exists only while somebody holds or awaits it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class InstanceLocks:
    def __init__(self) -> None:
        self._locks: dict[str, tuple[threading.Lock, int]] = {}
        self._guard = threading.Lock()

    @contextmanager
    def holding(self, uuid: str) -> Iterator[None]:
        """Wait for the instance's lock, and hold it."""
        with self._guard:
            lock, users = self._locks.get(uuid, (threading.Lock(), 0))
            self._locks[uuid] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._locks[uuid]
                if users == 1:
                    del self._locks[uuid]
                else:
                    self._locks[uuid] = (lock, users - 1)

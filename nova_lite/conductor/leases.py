# SPDX-License-Identifier: Apache-2.0
"""The leases of one conductor process: which operations it works on, renewed for as long as it does."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterable

from oslo_config import cfg

from nova_lite.db import operations
from nova_lite.db.session import Database
from nova_lite.service import Periodic


class Leases:
    """owner is this process' name in operations.owner: never used again, so that no process inherits by accident."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database) -> None:
        self.owner = f"conductor:{conf.host}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.seconds = conf.conductor.lease
        self._db = db
        self._held: set[str] = set()
        self._lock = threading.Lock()
        self._periodic = Periodic("leases", self.seconds / 3, self._renew)

    def hold(self, operation_uuids: Iterable[str]) -> None:
        """Renew these from now on; they have been claimed in the database."""
        with self._lock:
            self._held.update(operation_uuids)

    def let_go(self, operation_uuids: Iterable[str]) -> None:
        """Stop renewing: they have ended, or another one holds them."""
        with self._lock:
            self._held.difference_update(operation_uuids)

    def stop(self) -> None:
        self._periodic.stop()

    def _renew(self) -> None:
        with self._lock:
            held = sorted(self._held)
        if held:
            self._db.write(lambda conn: operations.renew(conn, held, self.owner, self.seconds))

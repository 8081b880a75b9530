# SPDX-License-Identifier: Apache-2.0
"""Every retry policy of nova_lite, by name. Each is bounded, and each retry is logged with its reason."""

from __future__ import annotations

from collections.abc import Callable

import tenacity
from oslo_db import exception as db_exception
from oslo_log import log

from nova_lite import metrics

LOG = log.getLogger(__name__)

# A transaction that lost a conflict is run again as a whole; under the worst contention that was measured, three
# tries were enough, so ten in a row mean that something else is wrong.
CONFLICT_TRIES = 10


def _say(what: str) -> Callable[[tenacity.RetryCallState], None]:
    def before_sleep(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        reason = str(error).split("\n", 1)[0]
        metrics.TRANSACTION_RETRIES.inc()
        LOG.info("retry what=%s attempt=%d reason=%s", what, state.attempt_number, reason)

    return before_sleep


class _DatabaseStop(tenacity.stop.stop_base):
    """Stop after CONFLICT_TRIES conflicts in a row, or after a time without a connection."""

    def __init__(self, retry_for: float) -> None:
        self._retry_for = retry_for

    def __call__(self, state: tenacity.RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, db_exception.DBConnectionError):
            return (state.seconds_since_start or 0.0) >= self._retry_for
        return state.attempt_number >= CONFLICT_TRIES


class _DatabaseWait(tenacity.wait.wait_base):
    """Conflicts: a few milliseconds at random. Lost connections: growing to two seconds."""

    _conflict = tenacity.wait_random_exponential(multiplier=0.005, max=0.2)
    _lost = tenacity.wait_random_exponential(multiplier=0.1, max=2.0)

    def __call__(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        wait = self._lost if isinstance(error, db_exception.DBConnectionError) else self._conflict
        return wait(state)


def database(retry_for: float) -> tenacity.Retrying:
    """Retry a whole transaction after a deadlock, a lock time-out or a lost connection.

    :param retry_for: seconds for which a lost connection is retried.
    """
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((db_exception.DBDeadlock, db_exception.DBConnectionError))
        | tenacity.retry_if_exception(_is_lock_timeout),
        stop=_DatabaseStop(retry_for),
        wait=_DatabaseWait(),
        before_sleep=_say("transaction"),
        reraise=True,
    )


def _is_lock_timeout(error: BaseException) -> bool:
    """SQLite says "database is locked", MariaDB 1205 or 1020: oslo.db has no type for them, or not everywhere."""
    text = str(error)
    return any(sign in text for sign in ("database is locked", "(1205, ", "(1020, "))

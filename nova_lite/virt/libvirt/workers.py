# SPDX-License-Identifier: Apache-2.0
"""A bounded pool of threads for calls that may hang: the caller waits until its deadline and never longer.

A thread stuck in a C library cannot be stopped, so the pool only counts those that are. Naively one would start a new
thread for each call; a daemon that hangs for an hour would then leave thousands behind. Here a call past its deadline
keeps its thread until it returns, and once every thread is stuck like that, further calls fail at once. The threads
are daemons: a hung call does not keep the process from ending (concurrent.futures' executor joins its threads at exit,
which is why it is not used).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class DeadlineExceededError(Exception):
    """The call did not return in time; it may still be running."""


class PoolStuckError(Exception):
    """Every thread of the pool is in a call that is past its deadline."""


class _Current(threading.local):
    """The job that this thread is at."""

    job: _Job | None = None


class _Job:
    __slots__ = ("finished", "function", "future", "overdue")

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.future: Future[Any] = Future()
        self.overdue = False
        self.finished = False


_current = _Current()


def stop_if_given_up() -> None:
    """Raise if the caller of the function that runs on this thread has left at its deadline.

    A function of several steps asks between them: what nobody waits for any more should not happen late.
    """
    if _current.job is not None and _current.job.overdue:
        raise DeadlineExceededError


class Begun(Generic[T]):
    """A call that is under way on a thread of a pool."""

    def __init__(self, job: _Job, give_up: Callable[[_Job], None]) -> None:
        self._job, self._give_up = job, give_up

    def ended(self, timeout: float) -> bool:
        """Wait for so many seconds; tell whether the call has ended."""
        wait([self._job.future], timeout)
        return self._job.future.done()

    def result(self, timeout: float | None = None) -> T:
        """Return what the function returns, raise what it raises.

        :raises DeadlineExceededError: timeout seconds have passed, in the queue or in the call; it is given up.
        """
        try:
            result: T = self._job.future.result(timeout)
        except TimeoutError:
            if self._job.future.done() and not self._job.future.cancelled():
                raise  # the function's own
            self.give_up()
            raise DeadlineExceededError from None
        return result

    def give_up(self) -> None:
        """Leave the call to itself: nobody will wait for it any more."""
        self._give_up(self._job)


class DeadlinePool:
    """At most ``size`` threads, started as they are needed."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size = name, size
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._unfinished = 0
        self._overdue = 0

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return self._threads

    def run(self, function: Callable[[], T], timeout: float) -> T:
        """Call the function on a thread of the pool; return what it returns, raise what it raises.

        :raises DeadlineExceededError: timeout seconds have passed, in the queue or in the call.
        :raises PoolStuckError: there is no thread that might ever take the call.
        """
        return self.begin(function).result(timeout)

    def begin(self, function: Callable[[], T]) -> Begun[T]:
        """Have the function called on a thread of the pool, and return at once.

        :raises PoolStuckError: there is no thread that might ever take the call.
        """
        job = _Job(function)
        self._submit(job)
        return Begun(job, self._give_up)

    def close(self) -> None:
        """Let the threads end when they have done what they are at."""
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)

    def _submit(self, job: _Job) -> None:
        with self._lock:
            if self._overdue >= self._size:
                raise PoolStuckError
            self._unfinished += 1
            self._jobs.put(job)
            if self._unfinished > self._threads and self._threads < self._size:
                self._threads += 1
                name = f"{self._name}-{self._threads}"
                threading.Thread(target=self._work, name=name, daemon=True).start()

    def _give_up(self, job: _Job) -> None:
        with self._lock:
            if not job.finished and not job.future.cancel():
                job.overdue = True
                self._overdue += 1

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            publish = self._perform(job) if job.future.set_running_or_notify_cancel() else None
            # Counted before the caller knows: its next call then finds this thread free.
            with self._lock:
                self._unfinished -= 1
                self._overdue -= job.overdue
                job.finished = True
            if publish is not None:
                publish()
            del job, publish  # do not hold on to the result while waiting for the next
        with self._lock:
            self._threads -= 1

    @staticmethod
    def _perform(job: _Job) -> Callable[[], None]:
        """Call the function; return what hands its result or error to the caller."""
        _current.job = job
        try:
            result = job.function()
        except BaseException as error:  # noqa: BLE001 - it is the caller's, and raised there
            return partial(job.future.set_exception, error)
        else:
            return partial(job.future.set_result, result)
        finally:
            _current.job = None

# SPDX-License-Identifier: Apache-2.0
"""Batching without waiting: whatever arrives while a batch is being worked on makes up the next one.

A lone item is worked on at once; under load the batches grow by themselves up to their limit, and the fixed cost of
a transaction or a message is shared by all items of a batch. Further threads are there for the case that a batch
takes long, not to take every item as it comes: that would make batches of one, which cost most when there is least
to spare.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from oslo_log import log

LOG = log.getLogger(__name__)

# Seconds for which a thread leaves items to gather while another batch is being worked on.
_PATIENCE = 0.25

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Batcher(Generic[Item, Answer]):
    """Gathers items and hands them to ``work``, batch after batch, in threads of its own.

    A further thread begins when a full batch waits, or when the batch before has taken a quarter of a second.
    ``work`` returns one answer per item, in order; if it raises, every item of the batch gets the error.
    """

    def __init__(
        self, name: str, work: Callable[[Sequence[Item]], Sequence[Answer]], limit: int, threads: int = 1
    ) -> None:
        self._work = work
        self._limit = limit
        self._waiting: deque[tuple[Item, Future[Answer]]] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._busy = 0
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, items: Sequence[Item]) -> list[Future[Answer]]:
        """Add items; returns a future for each one's answer.

        :raises RuntimeError: the batcher has been stopped.
        """
        added: list[tuple[Item, Future[Answer]]] = [(item, Future()) for item in items]
        with self._changed:
            if self._stopping:
                raise RuntimeError("this service is stopping")
            self._waiting.extend(added)
            self._changed.notify_all()
        return [future for _item, future in added]

    def stop(self) -> None:
        """Finish what waits, then end the threads."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _take(self) -> list[tuple[Item, Future[Answer]]]:
        with self._changed:
            batch: list[tuple[Item, Future[Answer]]] = []
            while not batch and (self._waiting or not self._stopping):
                self._changed.wait_for(lambda: self._waiting or self._stopping)
                self._changed.wait_for(self._is_worth_it, _PATIENCE)
                batch = [self._waiting.popleft() for _ in range(min(self._limit, len(self._waiting)))]
            self._busy += 1
            return batch

    def _is_worth_it(self) -> bool:
        return not self._busy or self._stopping or len(self._waiting) >= self._limit

    def _done(self) -> None:
        with self._changed:
            self._busy -= 1
            self._changed.notify_all()

    def _run(self) -> None:
        while batch := self._take():
            try:
                answers = self._work([item for item, _future in batch])
                for (_item, future), answer in zip(batch, answers, strict=True):
                    future.set_result(answer)
            except Exception as error:  # noqa: BLE001 - it belongs to those who wait, whatever it is
                LOG.debug("batch failed items=%d reason=%s", len(batch), error)
                for _item, future in batch:
                    if not future.done():
                        future.set_exception(error)
            finally:
                self._done()


def answering_nothing(work: Callable[[Sequence[Item]], None]) -> Callable[[Sequence[Item]], list[None]]:
    """Make work for a Batcher of a function whose only answer is that it returns."""

    def answer(items: Sequence[Item]) -> list[None]:
        work(items)
        return [None] * len(items)

    return answer

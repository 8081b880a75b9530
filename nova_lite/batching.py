# SPDX-License-Identifier: Apache-2.0
"""Batching without waiting: whatever arrives while a batch is being worked on makes up the next one.

A lone item is worked on at once; under load the batches grow by themselves up to their limit, and the fixed cost of
a transaction or a message is shared by all items of a batch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from oslo_log import log

LOG = log.getLogger(__name__)

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Batcher(Generic[Item, Answer]):
    """Gathers items and hands them to ``work``, batch after batch, in threads of its own.

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
            self._changed.notify()
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
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            return [self._waiting.popleft() for _ in range(min(self._limit, len(self._waiting)))]

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


def answering_nothing(work: Callable[[Sequence[Item]], None]) -> Callable[[Sequence[Item]], list[None]]:
    """Make work for a Batcher of a function whose only answer is that it returns."""

    def answer(items: Sequence[Item]) -> list[None]:
        work(items)
        return [None] * len(items)

    return answer

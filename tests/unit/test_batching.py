# SPDX-License-Identifier: Apache-2.0
"""Batches grow while another is worked on, and no thread waits for one that is stuck."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from nova_lite.batching import Batcher


class Work:
    """Work that stays at a batch until it is let go on; the first item of each batch says which."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.began = threading.Semaphore(0)
        self.go_on: dict[int, threading.Event] = {}

    def hold(self, item: int) -> threading.Event:
        self.go_on[item] = threading.Event()
        return self.go_on[item]

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        self.began.release()
        if items[0] in self.go_on:
            assert self.go_on[items[0]].wait(10)
        return [-item for item in items]


@pytest.mark.parametrize("threads", [1, 2])
def test_what_comes_during_a_batch_makes_up_the_next(threads: int) -> None:
    work = Work()
    first_may_end = work.hold(1)
    batcher: Batcher[int, int] = Batcher("test", work, limit=100, threads=threads)
    first = batcher.submit([1])
    assert work.began.acquire(timeout=10)

    rest = [batcher.submit([number])[0] for number in (2, 3, 4)]
    first_may_end.set()

    assert [future.result(10) for future in first + rest] == [-1, -2, -3, -4]
    batcher.stop()
    assert work.batches == [[1], [2, 3, 4]]


def test_a_full_batch_does_not_wait() -> None:
    work = Work()
    first_may_end = work.hold(1)
    batcher: Batcher[int, int] = Batcher("test", work, limit=2, threads=2)
    batcher.submit([1])
    assert work.began.acquire(timeout=10)

    second = batcher.submit([2, 3])

    assert [future.result(10) for future in second] == [-2, -3]
    first_may_end.set()
    batcher.stop()


def test_a_stuck_batch_keeps_nobody_waiting_for_long() -> None:
    work = Work()
    first_may_end = work.hold(1)
    batcher: Batcher[int, int] = Batcher("test", work, limit=100, threads=2)
    batcher.submit([1])
    assert work.began.acquire(timeout=10)

    assert batcher.submit([2])[0].result(10) == -2

    first_may_end.set()
    batcher.stop()


def test_stop_finishes_what_waits() -> None:
    work = Work()
    first_may_end = work.hold(1)
    batcher: Batcher[int, int] = Batcher("test", work, limit=2)
    futures = batcher.submit([1, 2, 3, 4, 5])
    assert work.began.acquire(timeout=10)

    threading.Timer(0.05, first_may_end.set).start()
    batcher.stop()

    assert [future.result(0) for future in futures] == [-1, -2, -3, -4, -5]
    with pytest.raises(RuntimeError):
        batcher.submit([6])


def test_an_error_is_everybodys_of_the_batch_and_of_nobody_else() -> None:
    def work(items: Sequence[int]) -> list[int]:
        if 1 in items:
            raise ValueError("one is bad")
        return list(items)

    batcher: Batcher[int, int] = Batcher("test", work, limit=2)
    bad = batcher.submit([1, 2])
    good = batcher.submit([3])

    assert [str(future.exception(10)) for future in bad] == ["one is bad", "one is bad"]
    assert good[0].result(10) == 3
    batcher.stop()

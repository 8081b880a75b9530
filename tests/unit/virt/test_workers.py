# SPDX-License-Identifier: Apache-2.0
"""The pool for calls that may hang: nobody waits beyond a deadline, and threads stay within their number."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from nova_lite.virt.libvirt.workers import DeadlineExceededError, DeadlinePool, PoolStuckError, stop_if_given_up
from tests.fixtures.libvirtd import wait_until


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What hung calls hang on; they go on at the end of the test at the latest."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def pool() -> Iterator[DeadlinePool]:
    pool = DeadlinePool("test", 2)
    yield pool
    pool.close()


def hang(pool: DeadlinePool, release: threading.Event) -> None:
    """Make a call that hangs, and leave it at its deadline."""
    with pytest.raises(DeadlineExceededError):
        pool.run(lambda: release.wait(30), 0.05)


def test_results_and_errors_come_back(pool: DeadlinePool) -> None:
    def fail() -> None:
        raise TimeoutError("the function's own")

    assert pool.run(lambda: 42, 5) == 42
    with pytest.raises(TimeoutError, match="the function's own"):
        pool.run(fail, 5)


def test_no_more_threads_than_needed(pool: DeadlinePool) -> None:
    for _ in range(10):
        pool.run(lambda: None, 5)

    assert pool.threads == 1


def test_one_hung_call_does_not_stop_others(pool: DeadlinePool, release: threading.Event) -> None:
    hang(pool, release)

    assert pool.run(lambda: "still works", 5) == "still works"


def test_when_all_threads_hang_calls_fail_at_once_and_recover(pool: DeadlinePool, release: threading.Event) -> None:
    hang(pool, release)
    hang(pool, release)
    for _ in range(20):
        with pytest.raises(PoolStuckError):
            pool.run(lambda: None, 30)
    assert pool.threads == 2

    release.set()

    def works() -> bool:
        try:
            return pool.run(lambda: True, 5)
        except PoolStuckError:
            return False

    wait_until(works, "the pool to recover", timeout=5)


def test_call_that_was_given_up_in_the_queue_never_runs(pool: DeadlinePool, release: threading.Event) -> None:
    both_busy = [threading.Thread(target=pool.run, args=(lambda: release.wait(30), 30)) for _ in range(2)]
    for thread in both_busy:
        thread.start()
    ran = threading.Event()
    wait_until(lambda: pool.threads == 2, "both threads to be busy")

    with pytest.raises(DeadlineExceededError):
        pool.run(ran.set, 0.05)
    release.set()
    for thread in both_busy:
        thread.join()
    pool.run(lambda: None, 5)
    pool.run(lambda: None, 5)

    assert not ran.is_set()


def test_later_steps_of_a_call_that_was_given_up_do_not_happen(pool: DeadlinePool, release: threading.Event) -> None:
    ended, happened = threading.Event(), threading.Event()

    def two_steps() -> None:
        try:
            release.wait(30)
            stop_if_given_up()
            happened.set()
        finally:
            ended.set()

    with pytest.raises(DeadlineExceededError):
        pool.run(two_steps, 0.05)
    release.set()

    assert ended.wait(5)
    assert not happened.is_set()
    pool.run(stop_if_given_up, 5)


def test_call_that_was_begun_is_waited_for_or_given_up(pool: DeadlinePool, release: threading.Event) -> None:
    def wait_and_answer() -> int:
        release.wait(30)
        return 7

    begun, given_up = pool.begin(wait_and_answer), pool.begin(wait_and_answer)
    assert not begun.ended(0.05)
    given_up.give_up()

    release.set()

    assert begun.ended(5)
    assert begun.result() == 7


def test_closed_pool_ends_its_threads(release: threading.Event) -> None:
    pool = DeadlinePool("test-closed", 2)
    hang(pool, release)
    pool.run(lambda: None, 5)

    pool.close()
    release.set()

    wait_until(lambda: pool.threads == 0, "the threads to end", timeout=5)

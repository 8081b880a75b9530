# SPDX-License-Identifier: Apache-2.0
"""A libvirtd that goes away or hangs: guests go on, calls fail in bounded time, and all is well when it is back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nova_lite import exception
from nova_lite.objects import instance as states
from tests.fixtures import guest as nano
from tests.fixtures.libvirtd import Libvirtd, wait_until
from tests.libvirt.conftest import Events, make_instance, wait_for_console

HASTY = {"call_timeout": 1.0, "connect_timeout": 0.5, "reconnect_interval": 0.2}


def libvirt_threads() -> int:
    """Return how many threads the driver has in this process."""
    return sum(thread.name.startswith("libvirt-call") for thread in threading.enumerate())


def test_guest_survives_a_restart_of_libvirtd(driver: Any, image: Path, libvirtd: Libvirtd, events: Events) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)
    beats = driver.console_output(instance, None).count(nano.BEAT)
    events.forget()

    libvirtd.restart()

    events.wait_for(instance.uuid)  # every domain is announced, since events may have been missed
    assert driver.power_state(instance) == states.RUNNING
    wait_for_console(driver, instance, nano.BEAT, count=beats + 1)
    assert driver.console_output(instance, None).count(nano.READY) == 1
    driver.power_off(instance, timeout=30)
    assert driver.power_state(instance) == states.SHUTDOWN


def test_events_come_again_after_a_restart(driver: Any, image: Path, libvirtd: Libvirtd, events: Events) -> None:
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    events.forget()
    libvirtd.restart()
    events.wait_for(instance.uuid)
    events.forget()

    driver.power_off(instance, timeout=0)

    events.wait_for(instance.uuid)


def test_calls_while_libvirtd_is_away_fail_soon_and_say_why(
    make_driver: Callable[..., Any], libvirtd: Libvirtd
) -> None:
    driver = make_driver(**HASTY)
    assert driver.domains() == []
    libvirtd.kill_daemon()
    try:
        began = time.monotonic()
        with pytest.raises(exception.HypervisorUnavailable, match="libvirt-sock"):
            wait_until(lambda: driver.domains() is None, "a failure")
        assert time.monotonic() - began < 5
    finally:
        libvirtd.start_daemon()

    wait_until(lambda: answers(driver), "the driver to connect again", timeout=10)


def test_driver_starts_while_libvirtd_is_away(make_driver: Callable[..., Any], libvirtd: Libvirtd) -> None:
    libvirtd.kill_daemon()
    try:
        driver = make_driver(**HASTY)
        with pytest.raises(exception.HypervisorUnavailable):
            driver.domains()
    finally:
        libvirtd.start_daemon()

    wait_until(lambda: answers(driver), "the driver to connect", timeout=10)


def test_hung_libvirtd_hangs_nobody(make_driver: Callable[..., Any], image: Path, libvirtd: Libvirtd) -> None:
    driver = make_driver(**HASTY, worker_threads=4, keepalive_interval=1, keepalive_count=100)
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)

    libvirtd.suspend()
    try:
        for number in range(8):
            began = time.monotonic()
            with pytest.raises(exception.HypervisorUnavailable) as failure:
                driver.power_state(instance)
            limit = HASTY["call_timeout"] + 1.0
            assert time.monotonic() - began < limit, f"call {number} took too long"
        assert "all 4 calls" in str(failure.value), "a call was started although all threads hang"
        assert time.monotonic() - began < 0.5
        assert nano.READY in driver.console_output(instance, None)
    finally:
        libvirtd.resume()

    wait_until(lambda: answers(driver), "the driver to answer again", timeout=10)
    assert driver.power_state(instance) == states.RUNNING


def test_libvirtd_that_hangs_for_long_takes_no_further_threads(
    make_driver: Callable[..., Any], image: Path, libvirtd: Libvirtd
) -> None:
    driver = make_driver(**{**HASTY, "connect_timeout": 0.1}, worker_threads=2, keepalive_interval=1, keepalive_count=1)
    before = libvirt_threads()
    assert driver.domains() == []

    libvirtd.suspend()
    try:
        # Keepalive breaks the connection, and a new one hangs while it is made: calls fail before they take a thread.
        wait_until(lambda: "was lost" in failure_of(driver), "the loss")
        for _ in range(10):
            assert "was lost" in failure_of(driver)
        assert libvirt_threads() <= before + 2
    finally:
        libvirtd.resume()

    wait_until(lambda: answers(driver), "the driver to connect again", timeout=10)


def test_hung_libvirtd_during_a_build_is_not_the_users_fault(
    make_driver: Callable[..., Any], image: Path, libvirtd: Libvirtd
) -> None:
    driver = make_driver(**HASTY)
    assert driver.domains() == []
    instance = make_instance()

    libvirtd.suspend()
    try:
        with pytest.raises(exception.HypervisorUnavailable):
            driver.spawn(instance, image, [], None)
    finally:
        libvirtd.resume()

    wait_until(lambda: answers(driver), "the driver to answer again", timeout=10)
    driver.spawn(instance, image, [], None)
    wait_for_console(driver, instance, nano.READY)


def test_stopping_the_driver_does_not_wait_for_a_hung_libvirtd(
    make_driver: Callable[..., Any], configure: Callable[..., Any], libvirtd: Libvirtd
) -> None:
    from nova_lite.virt.libvirt.driver import LibvirtDriver

    driver = LibvirtDriver(configure(**HASTY))
    driver.start(lambda uuid: None)
    assert driver.domains() == []

    libvirtd.suspend()
    try:
        began = time.monotonic()
        driver.stop()
        assert time.monotonic() - began < 5
    finally:
        libvirtd.resume()
    with pytest.raises(exception.HypervisorUnavailable, match="stopped"):
        driver.domains()


def answers(driver: Any) -> bool:
    """Tell whether the driver's calls succeed."""
    return failure_of(driver) == ""


def failure_of(driver: Any) -> str:
    """Return why the driver's calls fail, "" if they do not."""
    try:
        driver.domains()
    except exception.HypervisorUnavailable as error:
        return str(error)
    return ""


def test_many_threads_while_libvirtd_hangs_and_restarts(
    make_driver: Callable[..., Any], image: Path, libvirtd: Libvirtd
) -> None:
    """A connection shared by threads crashed the whole process here."""
    driver = make_driver(**HASTY, worker_threads=8, keepalive_interval=1, keepalive_count=1)
    instance = make_instance()
    driver.spawn(instance, image, [], None)
    finished = threading.Event()

    def call_on() -> None:
        while not finished.is_set():
            failure_of(driver)

    threads = [threading.Thread(target=call_on) for _ in range(12)]
    for thread in threads:
        thread.start()
    try:
        for disturb in (libvirtd.suspend, libvirtd.resume, libvirtd.restart, libvirtd.suspend, libvirtd.resume):
            disturb()
            finished.wait(1.5)  # the disturbance's length, not a wait for anything
    finally:
        finished.set()
        for thread in threads:
            thread.join(timeout=30)

    assert not any(thread.is_alive() for thread in threads)
    wait_until(lambda: answers(driver), "the driver to answer again", timeout=10)
    assert driver.power_state(instance) == states.RUNNING

# SPDX-License-Identifier: Apache-2.0
"""Real guests under emulation, on a libvirtd that belongs to the tests alone."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from nova_lite import conf as nova_conf
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.instance import Instance
from tests.fixtures import guest as nano
from tests.fixtures import hosts as hosts_fixture
from tests.fixtures import libvirtd as libvirtd_fixture
from tests.fixtures.hosts import Hosts
from tests.fixtures.libvirtd import Libvirtd, wait_until

FLAVOR = Flavor("1", "nano", vcpus=1, memory_mb=16, root_gb=1)


class Events:
    """An event sink that remembers what it was told."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._told: list[str] = []

    def __call__(self, uuid: str) -> None:
        with self._condition:
            self._told.append(uuid)
            self._condition.notify_all()

    def forget(self) -> None:
        """Drop what was told so far."""
        with self._condition:
            self._told.clear()

    def wait_for(self, uuid: str, timeout: float = 10.0) -> None:
        """Return when the uuid has been told, or fail."""
        with self._condition:
            assert self._condition.wait_for(lambda: uuid in self._told, timeout), f"no event of {uuid}"


@pytest.fixture(scope="session")
def libvirtd() -> Iterator[Libvirtd]:
    """A libvirtd of our own; its directory is short, since paths of unix sockets are."""
    lacks = libvirtd_fixture.missing()
    if lacks:
        reason = "real guests need " + "; ".join(lacks)
        if os.environ.get("NOVA_LITE_REQUIRE_LIBVIRT") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    daemon = Libvirtd(Path(tempfile.mkdtemp(prefix="nova-lite-"), "host"))
    try:
        daemon.start()
        daemon.run(["virsh", "capabilities"])  # libvirt asks each QEMU once what it can do, which takes a while
        yield daemon
    finally:
        daemon.stop()
        daemon.directory.parent.rmdir()


@pytest.fixture(scope="session")
def hosts() -> Iterator[Hosts]:
    """Three hosts with a libvirtd each, joined by a network of their own."""
    lacks = hosts_fixture.missing()
    if lacks:
        reason = "guests that move need " + "; ".join(lacks)
        if os.environ.get("NOVA_LITE_REQUIRE_LIBVIRT") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    made = Hosts(Path(tempfile.mkdtemp(prefix="nova-lite-")), 3)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        made.directory.rmdir()


@pytest.fixture(scope="session")
def image(libvirtd: Libvirtd, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The disk of the nano guest."""
    return nano.build_nano_guest(tmp_path_factory.getbasetemp() / "guest")


@pytest.fixture
def configure(libvirtd: Libvirtd, tmp_path: Path) -> Callable[..., cfg.ConfigOpts]:
    """Make a configuration for the private libvirtd; keywords are options of [libvirt]."""

    def configure(**options: Any) -> cfg.ConfigOpts:
        conf = cfg.ConfigOpts()
        nova_conf.register(conf)
        conf([], project="nova-lite", default_config_files=[])
        conf.set_override("state_path", str(tmp_path / "state"))
        conf.set_override("connection_uri", libvirtd.uri, "libvirt")
        conf.set_override("virt_type", "qemu", "libvirt")
        for name, value in options.items():
            conf.set_override(name, value, "libvirt")
        return conf

    return configure


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def make_driver(configure: Callable[..., cfg.ConfigOpts], events: Events) -> Iterator[Callable[..., Any]]:
    """Start drivers, keywords as for configure; they are stopped with all their domains removed."""
    from nova_lite.virt.libvirt.driver import LibvirtDriver

    started: list[LibvirtDriver] = []

    def make(**options: Any) -> LibvirtDriver:
        driver = LibvirtDriver(configure(**options))
        driver.start(events)
        started.append(driver)
        return driver

    yield make
    for driver in started:
        for domain in driver.domains():
            driver.destroy(make_instance(uuid=domain.uuid))
        driver.stop()


@pytest.fixture
def driver(make_driver: Callable[..., Any]) -> Any:
    return make_driver()


def make_instance(**changes: Any) -> Instance:
    """Return an instance of the nano flavor."""
    values: dict[str, Any] = {
        "uuid": str(uuid.uuid4()),
        "name": "nano <one>",
        "hostname": "nano-one",
        "project_id": "p" * 32,
        "user_id": "u" * 32,
        "flavor": FLAVOR,
        "node": "testhost",
        "host": "testhost",
    }
    return Instance(**{**values, **changes})


def flavor(**changes: Any) -> Flavor:
    """Return the nano flavor with changes."""
    return dataclasses.replace(FLAVOR, **changes)


def wait_for_console(driver: Any, instance: Instance, text: str, count: int = 1) -> None:
    """Return when the text has been on the console count times."""
    wait_until(
        lambda: driver.console_output(instance, None).count(text) >= count, f"{count} times {text!r} on the console"
    )

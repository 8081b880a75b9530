# SPDX-License-Identifier: Apache-2.0
"""Clouds that the stories share, since each takes seconds to start: every test finds them empty and in agreement.

One file a bug. A story whose ending needs separate processes that die is told in tests/integration/test_deaths.py:
Launchpad 1402574 (a scheduler dies between its grant and its answer) and 1679750 (a delete while the compute is down).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.fixtures import faults
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud, merged
from tests.fixtures.inside import InsideCloud
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.movers import Movers
from tests.fixtures.rabbitmq import RabbitMQ
from tests.fixtures.rack import Rack
from tests.fixtures.scheduling import Scheduling

# Builds that fail in a row on a host before its service is disabled.
PATIENCE_WITH_HOSTS = "5"


# Hosts for hundreds of servers; small batches and little patience, so that large requests take several calls and
# some of these time out; and a reaper that never rests.
LARGE = {
    "fake": {"hosts": "host[1-3]", "vcpus": "1000", "memory_mb": "1048576", "disk_gb": "10000"},
    "conductor": {"build_batch": "500", "scheduler_timeout": "1"},
    "scheduler": {"batch": "2", "reap_interval": "0.1"},
}

# What moves need: a live migration that can be looked at, reports that come ten times a second.
MOVING = {
    "fake": {"live_migration_seconds": "0.3"},
    "conductor": {
        "allow_resize_to_same_host": "true",
        "disable_after_build_failures": "0",
        "lease": "1",
        "sweep_interval": "0.2",
    },
    "compute": {"inventory_interval": "0.1"},
}
# A host of the rack that restarts is waited for.
PATIENT = {"conductor": {"compute_down_patience": "60"}}
RACK = ("host1", "host2", "host3")


# The clouds that are shared: all stories of one go to the same process, one after the other.
_SHARED = ("rack", "moving", "three_hosts", "ten_hosts", "large_hosts")

_Shared = TypeVar("_Shared", Cloud, Rack)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the stories of one cloud together, and otherwise those of one file."""
    groups: dict[str, str] = {}
    for item in items:
        used = getattr(item, "fixturenames", ())
        group = next((name for name in _SHARED if name in used), item.path.name)
        groups[item.nodeid] = group
        item.add_marker(pytest.mark.xdist_group(group))
        if group == "rack":
            # Hosts that die and return in a cloud of separate processes: minutes.
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: groups[item.nodeid])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make sure that processes which share the stories see the groups; some releases of pytest hide them."""
    if getattr(session.config.option, "loadgroup", False) and not all("@" in item.nodeid for item in session.items):
        raise pytest.UsageError("pytest-xdist does not see which stories belong together with this release of pytest")


class Clouds:
    """The shared cloud that runs now: one at a time, since an idle one takes its part of the cores as well."""

    def __init__(self, directories: pytest.TempPathFactory) -> None:
        self._directories = directories
        self._name = ""
        self._running: Cloud | Rack | None = None

    def get(self, name: str, start: Callable[[Path], _Shared]) -> _Shared:
        """Return the cloud of this name, started if another one runs or none."""
        if self._name != name:
            self.stop()
            self._running = start(self._directories.mktemp(name))
            self._name = name
        return self._running  # type: ignore[return-value]

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()
        self._running, self._name = None, ""


@pytest.fixture(scope="session")
def clouds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clouds]:
    made = Clouds(tmp_path_factory)
    yield made
    made.stop()


def _embedded(directory: Path, settings: dict[str, dict[str, str]]) -> Cloud:
    ours = {
        "fake": {"control_file": str(faults.control_file(directory))},
        "conductor": {"disable_after_build_failures": PATIENCE_WITH_HOSTS, "lease": "2"},
    }
    return Cloud.embedded(directory, merged(ours, settings))


@pytest.fixture
def three_hosts_running(clouds: Clouds) -> Cloud:
    return clouds.get("three-hosts", lambda directory: _embedded(directory, {"fake": {"hosts": "host[1-3]"}}))


@pytest.fixture
def ten_hosts_running(clouds: Clouds) -> Cloud:
    return clouds.get("ten-hosts", lambda directory: _embedded(directory, {"fake": {"hosts": "host[1-10]"}}))


@pytest.fixture
def large_hosts_running(clouds: Clouds) -> Cloud:
    return clouds.get("large-hosts", lambda directory: _embedded(directory, LARGE))


@pytest.fixture
def moving_hosts_running(clouds: Clouds) -> Cloud:
    settings = merged(merged(MOVING, PATIENT), {"fake": {"hosts": "host[1-4]"}})
    return clouds.get("moving-hosts", lambda directory: _embedded(directory, settings))


@pytest.fixture
def rack_running(mariadb: MariaDB, rabbitmq: RabbitMQ, clouds: Clouds) -> Rack:
    def start(directory: Path) -> Rack:
        bus, database = rabbitmq.vhost_url(), mariadb.url(mariadb.create_database())
        return Rack(directory, database, bus, RACK, merged(MOVING, PATIENT))

    return clouds.get("rack", start)


@pytest.fixture
def moving(moving_hosts_running: Cloud) -> Iterator[Movers]:
    """Whoever moves servers between four hosts of 4 VCPU, the computes of which are one process."""
    movers = Movers(moving_hosts_running)
    yield movers
    movers.clear()


@pytest.fixture
def rack(rack_running: Rack) -> Iterator[Rack]:
    """Three such hosts with a compute process each, and host0."""
    yield rack_running
    for host, process in rack_running.hosts.items():
        if process.process.poll() is not None:
            rack_running.start_host(host)
    Movers(rack_running).clear()
    rack_running.wait_until_hosts_are_up(RACK)


@pytest.fixture
def racked(rack: Rack) -> Movers:
    """Whoever moves servers between these."""
    return Movers(rack)


@pytest.fixture
def three_hosts(three_hosts_running: Cloud) -> Iterator[Cloud]:
    """Three hosts of 4 VCPU and 4096 MiB, three schedulers, two conductors."""
    yield three_hosts_running
    _clear(three_hosts_running)


@pytest.fixture
def ten_hosts(ten_hosts_running: Cloud) -> Iterator[Cloud]:
    """Ten such hosts."""
    yield ten_hosts_running
    _clear(ten_hosts_running)


@pytest.fixture
def large_hosts(large_hosts_running: Cloud) -> Iterator[Cloud]:
    """Three hosts of 1000 VCPU and 1 TiB, with the peculiarities of LARGE."""
    yield large_hosts_running
    _clear(large_hosts_running)


def _clear(cloud: Cloud) -> None:
    client = cloud.client()
    client.delete([server["id"] for server in client.servers()])
    for group in client.get("/os-server-groups")["server_groups"]:
        client.call("DELETE", f"/os-server-groups/{group['id']}")
    faults.forgive(client)
    assert not disagreements(cloud.database)


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InsideCloud]:
    """The embedded cloud as threads of this process, with its parts within reach."""
    cloud = InsideCloud(tmp_path_factory.mktemp("inside"))
    try:
        yield cloud
    finally:
        cloud.stop()


@pytest.fixture
def scheduling(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduling]:
    """Real placers on a real database, without hosts yet."""
    scheduling = Scheduling(tmp_path, tmp_path_factory.getbasetemp() / "scheduling.sqlite")
    yield scheduling
    scheduling.close()


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Client:
    """The administrator's client of the cloud that the test uses."""
    for name in ("three_hosts", "ten_hosts", "large_hosts", "inside"):
        if name in request.fixturenames:
            cloud: Cloud | InsideCloud = request.getfixturevalue(name)
            return cloud.client()
    raise LookupError("the test uses no cloud")

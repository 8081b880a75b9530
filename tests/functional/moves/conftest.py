# SPDX-License-Identifier: Apache-2.0
"""A cloud of three hosts in this process, whose hypervisor fails when it is told to; each test leaves it empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures import faults
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client, wait_until_empty
from tests.fixtures.inside import InsideCloud

SETTINGS = {
    "fake": {"hosts": "host[1-3]", "live_migration_seconds": "0.3"},
    "conductor": {
        "allow_resize_to_same_host": "true",
        "disable_after_build_failures": "0",
        "drain_interval": "0.2",
    },
    "compute": {"cpu_allocation_ratio": "1", "inventory_interval": "0.2"},
}


class Movers:
    """A cloud, its administrator, and what tests of moves keep asking."""

    def __init__(self, cloud: InsideCloud) -> None:
        self.cloud = cloud
        self.client: Client = cloud.client()
        self.small = self.client.flavor("small")
        self.large = self.client.flavor("large", vcpus=2, ram=1024, disk=2)

    def boot(self, name: str = "server", host: str | None = None, **more: Any) -> str:
        """Boot a small server, and wait until it is ACTIVE."""
        if host:
            more["availability_zone"] = f"nova:{host}"
        server = self.client.boot(name, self.small, **more)
        assert self.client.settle([server])[0]["status"] == "ACTIVE"
        return server

    def act(self, server: str, action: str, value: Any = None) -> None:
        self.client.call("POST", f"/servers/{server}/action", {action: value})

    def settled(self, server: str) -> tuple[str, str]:
        """Wait until nothing is being done to the server; return its status and its host."""
        (found,) = self.client.settle([server])
        return found["status"], found["OS-EXT-SRV-ATTR:host"]

    def becomes(self, server: str, status: str) -> str:
        """Wait until the server has a status and nothing is being done to it; return its host."""

        def unlike() -> list[str]:
            found = self.client.server(server)
            is_it = found["status"] == status and not found["OS-EXT-STS:task_state"]
            return [] if is_it else [f"{found['status']} instead of {status}"]

        wait_until_empty(unlike, 20)
        return str(self.client.server(server)["OS-EXT-SRV-ATTR:host"])

    def migrations(self, server: str) -> list[tuple[str, str]]:
        """Return type and status of the server's moves, the oldest first."""
        found = self.client.get(f"/os-migrations?instance_uuid={server}")["migrations"]
        return [(each["migration_type"], each["status"]) for each in reversed(found)]

    def files(self, server: str) -> list[str]:
        """Return what there is of the server on the hosts, as host/suffix."""
        root = Path(self.cloud.conf.fake.domains_path)
        return sorted(f"{path.parent.name}/{path.suffix[1:]}" for path in root.glob(f"*/{server}.*"))

    def only_on(self, server: str, host: str) -> None:
        """Wait until nothing of the server is left anywhere but on the host."""
        wanted = [f"{host}/disk", f"{host}/json"]
        wait_until_empty(lambda: [] if self.files(server) == wanted else [*self.files(server), "unlike", *wanted], 10)

    def faults(self, **of: Any) -> Any:
        """Let hosts or servers have these faults: host1={"spawn": {"fail": "no space left"}}."""
        return faults.injected(self.cloud.directory, {name.replace("_", "-"): value for name, value in of.items()})

    def used(self) -> dict[str, int]:
        """Return the VCPUs that are booked on each host."""
        found = self.client.call("GET", "/os-hypervisors/detail", headers={"OpenStack-API-Version": "compute 2.53"})[
            "hypervisors"
        ]
        return {each["hypervisor_hostname"]: each["vcpus_used"] for each in found}

    def force_down(self, host: str, down: bool = True) -> None:
        """Say of a host's compute service that it is certainly off, or on again."""
        (found,) = self.client.get(f"/os-services?binary=nova-compute&host={host}")["services"]
        self.client.call("PUT", f"/os-services/{found['id']}", {"forced_down": down})

    def agree(self) -> None:
        """Make sure that the books contradict nothing."""
        assert not disagreements(self.cloud.database)


@pytest.fixture(scope="module")
def moving_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InsideCloud]:
    made = InsideCloud(tmp_path_factory.mktemp("moves"), SETTINGS)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def movers(moving_cloud: InsideCloud) -> Iterator[Movers]:
    made = Movers(moving_cloud)
    yield made
    made.client.delete([server["id"] for server in made.client.servers()])
    for group in made.client.get("/os-server-groups")["server_groups"]:
        made.client.call("DELETE", f"/os-server-groups/{group['id']}")
    made.agree()
    assert set(made.used().values()) == {0}
    wait_until_empty(lambda: list(Path(moving_cloud.conf.fake.domains_path).glob("*/*.*")), 10)

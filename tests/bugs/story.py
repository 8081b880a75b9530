# SPDX-License-Identifier: Apache-2.0
"""Everything that happens to servers, in one go: for tests in which the database fails at any of its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fixtures import faults
from tests.fixtures.books import disagreements
from tests.fixtures.client import ApiError, Client, wait_until_empty
from tests.fixtures.inside import InsideCloud

# Waiting for leases that ran out takes seconds, each time that a process gave up on something.
PATIENCE = 40


class Story:
    """Boots that succeed, are retried, and fail; stop, start and reboot; deletes. refusals are what the user got."""

    def __init__(self, cloud: InsideCloud, client: Client) -> None:
        self._cloud = cloud
        self._client = client
        self.refusals: list[ApiError] = []
        self.ids: list[str] = []
        client.image()
        self._small, self._huge = client.flavor(), client.flavor("huge", vcpus=64)

    def _ask(self, request: Callable[[], Any]) -> Any:
        try:
            return request()
        except ApiError as error:
            self.refusals.append(error)
            return None

    def _settle(self, ids: list[str]) -> list[dict[str, Any]]:
        return self._client.settle(ids, patience=PATIENCE)

    def boot(self) -> list[dict[str, Any]]:
        """Boot three members of an anti-affinity group; then, with host1 failing, two servers and one far too large."""
        client = self._client
        group = self._ask(lambda: client.group("anti-affinity"))
        bad_host: faults.Faults = {"host1": {"spawn": {"fail": "the disk is broken"}}}
        asked = [self._ask(lambda: client.boot("member", self._small, group)) for _ in range(3)]
        self._settle([server for server in asked if server])
        with faults.injected(self._cloud.directory, bad_host):
            asked.append(self._ask(lambda: client.boot("retried", self._small)))
            asked.append(self._ask(lambda: client.boot("forced", self._small, availability_zone="nova:host1")))
            asked.append(self._ask(lambda: client.boot("huge", self._huge)))
            self.ids = [server for server in asked if server]
            return self._settle(self.ids)

    def act(self) -> list[dict[str, Any]]:
        """Lock, unlock, stop, start and reboot what is there."""
        for action in (
            {"lock": None},
            {"unlock": None},
            {"os_stop": None},
            {"os_start": None},
            {"reboot": {"type": "HARD"}},
        ):
            for server in self._client.servers(self.ids):
                if server["status"] == ("SHUTOFF" if "os_start" in action else "ACTIVE"):
                    self._ask(lambda server=server, action=action: self._client.act(server["id"], **action))
            self._settle(self.ids)
        return self._client.servers(self.ids)

    def end(self) -> None:
        """Delete everything; a refused delete is asked for again, as a user would."""
        for _again in range(2):
            # A server that is being deleted needs no second request, and may be gone by then.
            for server in [s for s in self._client.servers() if s["OS-EXT-STS:task_state"] != "deleting"]:
                self._ask(lambda server=server: self._client.call("DELETE", f"/servers/{server['id']}"))
            for group in self._client.get("/os-server-groups")["server_groups"]:
                self._ask(lambda group=group: self._client.call("DELETE", f"/os-server-groups/{group['id']}"))
        wait_until_empty(lambda: [s["id"] for s in self._client.servers()], PATIENCE)
        wait_until_empty(lambda: disagreements(self._cloud.database), 10)
        wait_until_empty(lambda: list((self._cloud.directory / "state" / "fake-domains").rglob("*.json")), 10)
        shown = self._client.get("/limits")["limits"]["absolute"]
        assert (shown["totalInstancesUsed"], shown["totalCoresUsed"], shown["totalRAMUsed"]) == (0, 0, 0)
        faults.forgive(self._client)


def as_it_should_be(booted: list[dict[str, Any]], acted: list[dict[str, Any]]) -> None:
    """Make sure that a story went as it does when nothing fails but host1, once."""
    expected = {"member": {"ACTIVE"}, "retried": {"ACTIVE"}, "forced": {"ERROR"}, "huge": {"ERROR"}}
    for servers in (booted, acted):
        assert len(servers) == 6
        for name, statuses in expected.items():
            found = [server for server in servers if server["name"] == name]
            assert {server["status"] for server in found} == statuses, found
    members = [server["OS-EXT-SRV-ATTR:host"] for server in booted if server["name"] == "member"]
    assert sorted(members) == ["host1", "host2", "host3"]
    faults_of = {server["name"]: server["fault"]["message"] for server in booted if server["status"] == "ERROR"}
    assert "host1: the disk is broken" in faults_of["forced"]
    assert "3 without room" in faults_of["huge"]

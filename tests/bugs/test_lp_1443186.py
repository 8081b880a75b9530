# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1443186, 1293480 and 1444630: a guest that was rebooted is switched off.

The hypervisor's word that the guest had stopped came late, was taken for news, and what was wanted (running) was made
to agree with it. Here an event only makes the host look again, after whatever action is under way; and nobody stops a
guest because of what was seen.
"""

from __future__ import annotations

import threading

import pytest

from nova_lite.objects import instance as states
from nova_lite.objects.instance import DomainInfo
from tests.fixtures import faults
from tests.fixtures.client import Client
from tests.fixtures.cloud import wait_for
from tests.fixtures.inside import InsideCloud


@pytest.fixture
def server(inside: InsideCloud, client: Client) -> str:
    server = client.boot("rebooted", client.flavor())
    client.settle([server])
    return server


def still_on(inside: InsideCloud, client: Client, server: str) -> bool:
    domain = inside.driver.domain(server)
    assert domain is not None
    return domain.power_state == states.RUNNING and client.server(server)["status"] == "ACTIVE"


def test_stopped_events_around_a_reboot(inside: InsideCloud, client: Client, server: str) -> None:
    with faults.injected(inside.directory, {"*": {"reboot": {"delay": 0.5}}}):
        client.act(server, reboot={"type": "HARD"})
        for _late in range(10):
            inside.compute._on_event(server)
        client.settle([server])
    for _later in range(10):
        inside.compute._on_event(server)
    looked = threading.Event()
    inside.compute._events.submit([server])[0].add_done_callback(lambda _future: looked.set())
    assert looked.wait(10)
    assert still_on(inside, client, server)
    client.delete([server])


def test_a_list_of_domains_that_is_older_than_a_start(
    inside: InsideCloud, client: Client, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.act(server, os_stop=None)
    client.settle([server])
    listed, go_on = threading.Event(), threading.Event()
    domains = inside.driver.domains

    def slow_domains() -> list[DomainInfo]:
        found = domains()
        listed.set()
        assert go_on.wait(30)
        return found

    monkeypatch.setattr(inside.driver, "domains", slow_domains)
    assert listed.wait(10), "nobody listed the domains"
    client.act(server, os_start=None)
    client.settle([server])
    monkeypatch.setattr(inside.driver, "domains", domains)
    seen: list[str] = []
    reports = threading.Event()
    report = inside.compute._conductor.report_domains

    def reported(*args: object) -> object:
        found = report(*args)  # type: ignore[arg-type]
        seen.append(client.server(server)["status"])
        reports.set()
        return found

    monkeypatch.setattr(inside.compute._conductor, "report_domains", reported)
    go_on.set()
    assert reports.wait(10)
    assert seen[0] == "ACTIVE"
    wait_for(lambda: still_on(inside, client, server), 5)
    client.delete([server])

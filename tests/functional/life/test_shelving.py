# SPDX-License-Identifier: Apache-2.0
"""Shelving in the whole cloud: the place goes and comes with the state that says so, whatever fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db import models
from nova_lite.objects import instance as states
from nova_lite.objects.instance import DomainInfo
from tests.fixtures import faults
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import wait_for
from tests.fixtures.inside import InsideCloud
from tests.functional.life.test_images import files, image_of
from tests.functional.life.test_pause_and_suspend import last_action, settled


@pytest.fixture
def offload_time(inside: InsideCloud) -> Iterator[Any]:
    """Set [compute]shelved_offload_time, until the end of the test."""
    yield lambda seconds: inside.conf.set_override("shelved_offload_time", seconds, "compute")
    inside.conf.clear_override("shelved_offload_time", "compute")


def _host(client: Client, server: str) -> Any:
    return client.server(server)["OS-EXT-SRV-ATTR:host"]


def _allocations(inside: InsideCloud, server: str) -> int:
    engine = sa.create_engine(inside.database)
    mine = models.allocations.c.consumer == server
    try:
        with engine.connect() as conn:
            return int(conn.scalar(sa.select(sa.func.count()).select_from(models.allocations).where(mine)) or 0)
    finally:
        engine.dispose()


def _shelved_image(client: Client, server: str) -> dict[str, Any] | None:
    images = f"{client.url}/image/v2/images"
    found = client.session.get(images, params={"instance_uuid": server}, timeout=30).json()["images"]
    return dict(found[0]) if found else None


def _events(client: Client, server: str) -> list[tuple[str, str]]:
    return [(event["event"], event["result"]) for event in last_action(client, server)["events"]]


def test_a_server_gives_its_place_back_at_once_and_gets_another(
    inside: InsideCloud, client: Client, server: str
) -> None:
    client.act(server, shelve=None)
    found = settled(client, server)
    assert (found["status"], found["OS-EXT-SRV-ATTR:host"]) == ("SHELVED_OFFLOADED", None)
    assert _allocations(inside, server) == 0
    assert inside.driver.domain(server) is None
    assert not disagreements(inside.database)
    assert sorted(_events(client, server)) == [
        ("compute_shelve_instance", "Success"),
        ("compute_shelve_offload_instance", "Success"),
    ]
    image = _shelved_image(client, server)
    assert image is not None and (image["name"], image["status"]) == ("alive-shelved", "active")

    client.act(server, unshelve=None)
    found = settled(client, server)
    assert found["status"] == "ACTIVE" and found["OS-EXT-SRV-ATTR:host"]
    assert _allocations(inside, server) == 1
    assert last_action(client, server)["action"] == "unshelve"
    assert {event for event, _ in _events(client, server)} == {
        "conductor_select_destinations",
        "compute_unshelve_instance",
    }
    wait_for(lambda: _shelved_image(client, server) is None and image["id"] not in files(inside), 10)


def test_a_server_that_keeps_its_place_is_started_there(
    inside: InsideCloud, client: Client, server: str, offload_time: Any
) -> None:
    offload_time(-1)
    host = _host(client, server)
    client.act(server, shelve=None)
    found = settled(client, server)
    assert (found["status"], found["OS-EXT-SRV-ATTR:host"]) == ("SHELVED", host)
    assert _allocations(inside, server) == 1
    inside.compute._events.submit([server])[0].result(10)
    assert client.server(server)["status"] == "SHELVED", "a report of the domain undid it"
    client.act(server, unshelve=None)
    assert settled(client, server)["status"] == "ACTIVE"
    wait_for(lambda: _shelved_image(client, server) is None, 10)


def test_an_administrator_offloads_a_shelved_server(
    inside: InsideCloud, client: Client, server: str, offload_time: Any
) -> None:
    offload_time(-1)
    client.act(server, shelve=None)
    settled(client, server)
    client.act(server, shelveOffload=None)
    assert settled(client, server)["status"] == "SHELVED_OFFLOADED"
    assert _events(client, server) == [("compute_shelve_offload_instance", "Success")]


def test_the_place_goes_after_a_while(inside: InsideCloud, client: Client, server: str, offload_time: Any) -> None:
    offload_time(1)
    client.act(server, shelve=None)
    assert settled(client, server)["status"] == "SHELVED"
    wait_for(lambda: client.server(server)["status"] == "SHELVED_OFFLOADED", 15)
    assert [a["action"] for a in client.get(f"/servers/{server}/os-instance-actions")["instanceActions"][:2]] == [
        "shelveOffload",
        "shelve",
    ]


@pytest.mark.parametrize(("before", "status"), [(None, "ACTIVE"), ("pause", "PAUSED"), ("suspend", "SUSPENDED")])
def test_a_server_that_cannot_be_copied_is_what_it_was(
    inside: InsideCloud, client: Client, server: str, before: str | None, status: str
) -> None:
    if before:
        client.act(server, **{before: None})
        settled(client, server)
    with faults.injected(inside.directory, {"*": {"snapshot": {"fail": "the disk is bad"}}}):
        client.act(server, shelve=None)
        found = settled(client, server)
    assert (found["status"], _allocations(inside, server)) == (status, 1)
    domain = inside.driver.domain(server)
    assert domain is not None and domain.power_state == found["OS-EXT-STS:power_state"]
    assert "the disk is bad" in last_action(client, server)["message"]
    assert _shelved_image(client, server) is None


def test_a_server_whose_guest_cannot_be_removed_stays_shelved(inside: InsideCloud, client: Client, server: str) -> None:
    with faults.injected(inside.directory, {"*": {"destroy": {"fail": "it will not go"}}}):
        client.act(server, shelve=None)
        found = settled(client, server)
    assert (found["status"], _allocations(inside, server)) == ("SHELVED", 1)
    assert "it will not go" in last_action(client, server)["message"]
    image = _shelved_image(client, server)
    assert image is not None and image["status"] == "active"
    client.act(server, shelveOffload=None)
    assert settled(client, server)["status"] == "SHELVED_OFFLOADED"


def test_an_unshelve_that_fails_everywhere_leaves_an_offloaded_server(
    inside: InsideCloud, client: Client, server: str
) -> None:
    client.act(server, shelve=None)
    settled(client, server)
    with faults.injected(inside.directory, {"*": {"spawn": {"fail": "no space left"}}}):
        client.act(server, unshelve=None)
        found = settled(client, server)
    assert (found["status"], found["OS-EXT-SRV-ATTR:host"]) == ("SHELVED_OFFLOADED", None)
    assert _allocations(inside, server) == 0
    assert not disagreements(inside.database)
    assert last_action(client, server)["message"].count("no space left") >= 1
    faults.forgive(client)
    client.act(server, unshelve=None)
    assert settled(client, server)["status"] == "ACTIVE"


def test_an_unshelve_without_room_says_so(inside: InsideCloud, client: Client, server: str) -> None:
    client.act(server, shelve=None)
    settled(client, server)
    whole = client.flavor("whole", vcpus=4)
    others = [client.boot(f"other-{number}", whole) for number in range(3)]
    client.settle(others)
    client.act(server, unshelve=None)
    found = settled(client, server)
    assert (found["status"], found["OS-EXT-SRV-ATTR:host"]) == ("SHELVED_OFFLOADED", None)
    assert "No valid host" in last_action(client, server)["message"]
    client.delete(others)


@pytest.mark.parametrize("host", ["host1", "host2", "host3"])
def test_an_unshelve_goes_where_it_is_sent(inside: InsideCloud, client: Client, server: str, host: str) -> None:
    client.act(server, shelve=None)
    settled(client, server)
    client.act(server, unshelve={"host": host})
    found = settled(client, server)
    assert (found["status"], found["OS-EXT-SRV-ATTR:host"]) == ("ACTIVE", host)


@pytest.mark.parametrize(("action", "step"), [("shelve", "snapshot"), ("shelve", "destroy"), ("unshelve", "spawn")])
def test_a_delete_in_the_middle_wins(inside: InsideCloud, client: Client, server: str, action: str, step: str) -> None:
    before = files(inside)
    if action == "unshelve":
        client.act(server, shelve=None)
        settled(client, server)
    with faults.injected(inside.directory, {"*": {step: {"delay": 0.7}}}):
        client.act(server, **{action: None})
        client.delete([server])
    wait_for(lambda: inside.driver.domain(server) is None, 10)
    wait_for(lambda: _shelved_image(client, server) is None and files(inside) <= before, 10)


def test_what_is_left_of_an_offloaded_server_goes_and_that_of_a_shelved_one_stays(
    inside: InsideCloud, client: Client, server: str, offload_time: Any
) -> None:
    offload_time(-1)
    client.act(server, shelve=None)
    settled(client, server)
    inside.compute._report_domains()
    assert inside.driver.domain(server) is not None
    client.act(server, shelveOffload=None)
    settled(client, server)
    inside.driver._put(DomainInfo(server, "host1", states.RUNNING))
    wait_for(lambda: inside.driver.domain(server) is None, 10)
    client.act(server, unshelve=None)
    assert settled(client, server)["status"] == "ACTIVE"
    inside.compute._report_domains()
    assert inside.driver.domain(server) is not None


def test_a_shelved_server_keeps_its_quota_and_its_image(inside: InsideCloud, client: Client, server: str) -> None:
    before = client.get("/limits")["limits"]["absolute"]["totalInstancesUsed"]
    base = client.server(server)["image"]["id"]
    client.act(server, shelve=None)
    found = settled(client, server)
    assert found["image"]["id"] == base
    assert client.get("/limits")["limits"]["absolute"]["totalInstancesUsed"] == before
    assert image_of(client, base) is not None

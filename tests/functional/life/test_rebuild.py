# SPDX-License-Identifier: Apache-2.0
"""Rebuilds in the whole cloud: the place stays, the guest is new, and failures say how much is left."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db import models
from nova_lite.objects import instance as states
from tests.fixtures import faults
from tests.fixtures.client import Client
from tests.fixtures.cloud import wait_for
from tests.fixtures.inside import InsideCloud
from tests.functional.life.test_pause_and_suspend import last_action, settled


def _image_of(client: Client, server: str) -> str:
    return str(client.server(server)["image"]["id"])


def _books(inside: InsideCloud) -> list[Any]:
    nodes, allocations = models.compute_nodes, models.allocations
    engine = sa.create_engine(inside.database)
    try:
        with engine.connect() as conn:
            used = sa.select(nodes.c.host, nodes.c.used_vcpus, nodes.c.used_memory_mb, nodes.c.instances)
            return [conn.execute(used.order_by(nodes.c.id)).all(), conn.execute(sa.select(allocations)).all()]
    finally:
        engine.dispose()


@pytest.mark.long
def test_fifty_rebuilds_leave_the_books_as_they_are(inside: InsideCloud, client: Client, server: str) -> None:
    images = [client.image("first"), client.image("second")]
    before, host = _books(inside), client.server(server)["OS-EXT-SRV-ATTR:host"]
    for number in range(50):
        client.act(server, rebuild={"imageRef": images[number % 2], "name": f"n{number}"})
        found = settled(client, server)
        assert (found["status"], found["name"], found["image"]["id"]) == ("ACTIVE", f"n{number}", images[number % 2])
    assert client.server(server)["OS-EXT-SRV-ATTR:host"] == host
    assert _books(inside) == before
    action = last_action(client, server)
    assert (action["action"], action["events"][0]["event"]) == ("rebuild", "compute_rebuild_instance")


def test_what_was_off_is_off_afterwards(inside: InsideCloud, client: Client, server: str) -> None:
    client.act(server, os_stop=None)
    settled(client, server)
    client.act(server, rebuild={"imageRef": _image_of(client, server)})
    found = settled(client, server)
    assert (found["status"], found["OS-EXT-STS:power_state"]) == ("SHUTOFF", states.SHUTDOWN)


def test_the_old_guest_stays_if_the_new_one_cannot_be_begun(inside: InsideCloud, client: Client, server: str) -> None:
    before = _image_of(client, server)
    body = {"imageRef": client.image("second"), "metadata": {"a": "b"}, "name": "renamed"}
    with faults.injected(inside.directory, {"*": {"destroy": {"fail": "it will not go"}}}):
        client.act(server, rebuild=body)
        found = settled(client, server)
    assert (found["status"], found["image"]["id"], found["metadata"]) == ("ACTIVE", before, {})
    assert found["name"] == "renamed", "a name is no part of the guest"
    assert "it will not go" in last_action(client, server)["message"]


@pytest.mark.parametrize("fault", [{"fail": "no space left"}, {"hang": True}])
def test_a_new_guest_that_cannot_be_made_is_an_error_that_a_rebuild_mends(
    inside: InsideCloud, client: Client, server: str, fault: dict[str, Any]
) -> None:
    second = client.image("second")
    with faults.injected(inside.directory, {"*": {"spawn": fault}}):
        client.act(server, rebuild={"imageRef": second})
        found = settled(client, server)
    assert (found["status"], found["image"]["id"]) == ("ERROR", second)
    assert ("no space left" if "fail" in fault else "hangs") in found["fault"]["message"]
    client.act(server, rebuild={"imageRef": second})
    assert settled(client, server)["status"] == "ACTIVE"


@pytest.mark.parametrize("step", ["destroy", "spawn"])
def test_a_delete_in_the_middle_wins(inside: InsideCloud, client: Client, server: str, step: str) -> None:
    with faults.injected(inside.directory, {"*": {step: {"delay": 0.7}}}):
        client.act(server, rebuild={"imageRef": _image_of(client, server)})
        client.delete([server])
    assert inside.driver.domain(server) is None


def test_the_steps_are_shown_while_they_are_done(inside: InsideCloud, client: Client, server: str) -> None:
    with faults.injected(inside.directory, {"*": {"destroy": {"delay": 0.7}, "spawn": {"delay": 0.7}}}):
        client.act(server, rebuild={"imageRef": _image_of(client, server)})
        for step in ("rebuilding", "rebuild_spawning"):
            wait_for(lambda step=step: client.server(server)["OS-EXT-STS:task_state"] == step, 10)  # type: ignore[misc]
            assert client.server(server)["status"] == "REBUILD"
        settled(client, server)

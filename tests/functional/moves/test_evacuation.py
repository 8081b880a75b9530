# SPDX-License-Identifier: Apache-2.0
"""Evacuations: only from a host that is fenced; what the dead host holds, and what it does when it returns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fixtures.client import ApiError, wait_until_empty
from tests.functional.moves.conftest import Movers


@contextmanager
def dead(movers: Movers, *hosts: str) -> Iterator[None]:
    """Force hosts down; their compute service, which goes on, removes what it is proven to have lost."""
    for host in hosts:
        movers.force_down(host)
    try:
        yield
    finally:
        for host in hosts:
            wait_until_empty(lambda host=host: _still_held(movers, host), 10)  # type: ignore[misc]
            movers.force_down(host, False)


def _still_held(movers: Movers, host: str) -> list[str]:
    found = movers.client.get(f"/os-migrations?migration_type=evacuation&source_compute={host}")["migrations"]
    return [each["uuid"] for each in found if each["status"] == "done"]


def test_a_host_that_is_in_use_is_not_evacuated(movers: Movers) -> None:
    server = movers.boot(host="host1")
    with pytest.raises(ApiError, match="still in use"):
        movers.act(server, "evacuate", {})
    assert movers.migrations(server) == []


def test_a_server_is_built_anew_on_another_host(movers: Movers) -> None:
    server = movers.boot(host="host1")
    with dead(movers, "host1"):
        body = {"evacuate": {"host": "host2"}}
        older = {"OpenStack-API-Version": "compute 2.90"}
        movers.client.call("POST", f"/servers/{server}/action", body, headers=older)
        assert movers.becomes(server, "ACTIVE") == "host2"
        # The host's compute service runs: it finds the proof, removes the domain, and gives its half back.
        movers.only_on(server, "host2")
        wait_until_empty(lambda: _still_held(movers, "host1"), 10)
    assert movers.used() == {"host1": 0, "host2": 1, "host3": 0}
    assert movers.migrations(server) == [("evacuation", "completed")]


def test_a_failed_one_leaves_the_server_down_and_tells_why(movers: Movers) -> None:
    server = movers.boot(host="host1")
    with dead(movers, "host1"), movers.faults(server={"spawn": {"fail": "no space left"}}):
        movers.act(server, "evacuate", {})
        assert movers.settled(server)[1] == "host1"
    assert movers.migrations(server) == [("evacuation", "error")]
    assert movers.used() == {"host1": 1, "host2": 0, "host3": 0}


@pytest.mark.parametrize("free", [2, 1])
def test_two_members_of_a_group_never_land_together(movers: Movers, free: int) -> None:
    # Launchpad 1735407
    group = movers.client.group("anti-affinity")
    one = movers.boot("one", host="host1", group=group)
    with dead(movers, "host1"):
        if free == 1:
            other = movers.boot("other", host="host2", group=group)
        movers.act(one, "evacuate", {})
        assert movers.settled(one)[1] == ("host3" if free == 1 else movers.settled(one)[1])
        if free == 1:
            assert movers.settled(other)[1] == "host2"
        wait_until_empty(lambda: _still_held(movers, "host1"), 10)
    movers.agree()


def test_an_evacuated_server_ends_stopped_from_2_95_on(movers: Movers) -> None:
    server = movers.boot(host="host1")
    with dead(movers, "host1"):
        movers.act(server, "evacuate", {"host": "host2"})
        assert movers.becomes(server, "SHUTOFF") == "host2"
        wait_until_empty(lambda: _still_held(movers, "host1"), 10)

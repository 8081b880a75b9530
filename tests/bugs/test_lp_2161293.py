# SPDX-License-Identifier: Apache-2.0
"""Launchpad 2161293: a server is seen in ERROR, and there is no word of why yet.

State and fault were written in two transactions. Here they are one: whoever sees ERROR, however often they look, sees
the fault with it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.fixtures import faults
from tests.fixtures.client import Client, at_once
from tests.fixtures.cloud import Cloud


@pytest.mark.parametrize(("vcpus", "reason"), [(64, "No valid host"), (1, "the disk is broken")])
def test_the_fault_is_there_as_soon_as_the_error(three_hosts: Cloud, client: Client, vcpus: int, reason: str) -> None:
    flavor = client.flavor(f"vcpus-{vcpus}", vcpus=vcpus)
    seen: list[dict[str, Any]] = []

    def watch(number: int) -> None:
        server = client.boot(f"watched-{number}", flavor)
        deadline = time.monotonic() + 60
        while (shown := client.server(server))["status"] == "BUILD":
            assert time.monotonic() < deadline
        seen.append(shown)

    with faults.injected(three_hosts.directory, {"*": {"spawn": {"fail": "the disk is broken"}}}):
        at_once(4, watch)
    assert [server["status"] for server in seen] == ["ERROR"] * 4
    assert all(reason in server.get("fault", {}).get("message", "") for server in seen), seen
    assert all(server["OS-EXT-STS:task_state"] is None for server in seen)

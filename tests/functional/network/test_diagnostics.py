# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of a server, in both of their shapes."""

from __future__ import annotations

import pytest

from tests.fixtures.client import ApiError, Client
from tests.fixtures.cloud import wait_for
from tests.functional.network.conftest import boot


def test_a_running_server_is_measured(client: Client) -> None:
    server = boot(client)
    (shown,) = client.settle([server])
    mac = shown["addresses"]["lab"][0]["OS-EXT-IPS-MAC:mac_addr"]
    path = f"/servers/{server}/diagnostics"

    new = client.call("GET", path, headers={"OpenStack-API-Version": "compute 2.48"})
    old = client.call("GET", path, headers={"OpenStack-API-Version": "compute 2.47"})

    assert new.pop("uptime") >= 0
    nothing = {"octets": 0, "packets": 0, "errors": 0, "drop": 0, "rate": None}
    assert new == {
        "state": "running",
        "driver": "fake",
        "hypervisor": "fake",
        "hypervisor_os": "linux",
        "config_drive": True,
        "num_cpus": 1,
        "num_disks": 1,
        "num_nics": 1,
        "cpu_details": [{"id": 0, "time": 0, "utilisation": None}],
        "memory_details": {"maximum": 512, "used": 512},
        "disk_details": [
            {"read_bytes": 0, "read_requests": 0, "write_bytes": 0, "write_requests": 0, "errors_count": -1}
        ],
        "nic_details": [{"mac_address": mac, **{f"{way}_{k}": v for way in ("rx", "tx") for k, v in nothing.items()}}],
    }
    assert (old["cpu0_time"], old["memory"], old["vda_errors"]) == (0, 512 << 10, -1)


def test_a_server_that_does_not_run_is_not(client: Client) -> None:
    server = boot(client)
    client.settle([server])
    client.act(server, os_stop=None)
    wait_for(lambda: client.server(server)["status"] == "SHUTOFF", 30)

    with pytest.raises(ApiError, match="while it is in power_state shutdown") as error:
        client.get(f"/servers/{server}/diagnostics")

    assert error.value.status == 409

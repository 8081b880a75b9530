# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1724172: a host that is installed anew stays charged for the guests that were evacuated from it.

They were looked for among the hypervisor's domains, of which there were none any more. Here the charges go by what is
on record.
"""

from __future__ import annotations

from tests.fixtures.client import wait_until_empty
from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack


def test_a_host_comes_back_without_any_domain(rack: Rack, racked: Movers) -> None:
    servers = [racked.boot(f"server-{number}", "host1") for number in range(2)]
    rack.hosts["host1"].kill()
    racked.force_down("host1")
    for server in servers:
        racked.evacuate(server, "host2")
        assert racked.settled(server) == ("ACTIVE", "host2")
    assert racked.in_use() == {"host1": 2, "host2": 2}
    for path in (racked.domains_path / "host1").iterdir():
        path.unlink()
    rack.restart_host("host1")
    wait_until_empty(lambda: racked.used()["host1"] * ["VCPU"], 20)
    assert [racked.migrations(server) for server in servers] == [[("evacuation", "completed")]] * 2
    racked.agree()
    racked.force_down("host1", False)
    racked.boot("whole", "host1", flavor=racked.client.flavor("whole", vcpus=4))

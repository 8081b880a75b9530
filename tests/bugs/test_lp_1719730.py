# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1719730: a server that is rescheduled forgets its group.

The retry went without the group's rule, and put the server onto a host with another member. Here every attempt reads
the group anew: without a host that keeps the rule, the server ends in ERROR and says so.
"""

from __future__ import annotations

from tests.fixtures import faults
from tests.fixtures.books import disagreements
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud


def test_the_only_other_host_holds_a_member(three_hosts: Cloud, client: Client) -> None:
    whole, flavor = client.flavor("whole", vcpus=4), client.flavor()
    group = client.group("anti-affinity")
    member = client.boot("member", flavor, group, availability_zone="nova:host2")
    fill = client.boot("fill", whole, availability_zone="nova:host3")
    assert {server["status"] for server in client.settle([member, fill])} == {"ACTIVE"}
    with faults.injected(three_hosts.directory, {"host1": {"spawn": {"fail": "no space left on device"}}}):
        (server,) = client.settle([client.boot("second-member", flavor, group)])
    assert server["status"] == "ERROR"
    reason = server["fault"]["message"]
    assert "1 where an earlier attempt failed (host1)" in reason
    assert "1 already with 1 member of the anti-affinity group" in reason
    assert "host1: no space left on device" in reason
    assert not disagreements(three_hosts.database)

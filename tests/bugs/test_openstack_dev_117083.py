# SPDX-License-Identifier: Apache-2.0
"""openstack-dev of May 2017, message 117083: a host on which every build fails is the emptiest, and so gets them all.

Here a host with failures weighs less than any other, and after so many in a row its service is disabled, with a reason
that an operator reads in the list of services; enabling it gives it a clean record.
"""

from __future__ import annotations

from typing import Any

from tests.bugs.conftest import PATIENCE_WITH_HOSTS
from tests.fixtures import faults, races
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud

LIMIT = int(PATIENCE_WITH_HOSTS)
BROKEN: faults.Faults = {"host1": {"spawn": {"fail": "the hypervisor is broken"}}}


def service_of_host1(client: Client) -> dict[str, Any]:
    (service,) = client.get("/os-services?binary=nova-compute&host=host1")["services"]
    return dict(service)


def test_a_fail_magnet_is_avoided(three_hosts: Cloud, client: Client) -> None:
    flavor = client.flavor()
    fill = [client.boot(f"fill-{host}", flavor, availability_zone=f"nova:{host}") for host in ("host2", "host3")]
    client.settle(fill)
    with faults.injected(three_hosts.directory, BROKEN):
        ids = [client.boot(f"server-{number}", flavor) for number in range(6)]
        servers = client.settle(ids)
    assert set(races.hosts(servers)) == {"host2", "host3"}, races.faults(servers)
    assert len(races.hosts(servers)) == 2 and sum(races.hosts(servers).values()) == len(ids)
    failures = races.attempts(client, servers) - len(ids)
    assert 1 <= failures <= len(ids)


def test_a_fail_magnet_is_set_aside(three_hosts: Cloud, client: Client) -> None:
    flavor = client.flavor()
    with faults.injected(three_hosts.directory, BROKEN):
        for number in range(LIMIT):
            assert service_of_host1(client)["status"] == "enabled"
            (server,) = client.settle([client.boot(f"sent-{number}", flavor, availability_zone="nova:host1")])
            assert "the hypervisor is broken" in server["fault"]["message"]
        service = service_of_host1(client)
        assert service["status"] == "disabled"
        assert f"after {LIMIT} builds failed in a row" in service["disabled_reason"]
        (refused,) = client.settle([client.boot("one-more", flavor, availability_zone="nova:host1")])
        assert races.attempts(client, [refused]) == 0
        assert "disabled" in refused["fault"]["message"]
    client.call("PUT", f"/os-services/{service['id']}", {"status": "enabled"})
    (server,) = client.settle([client.boot("mended", flavor, availability_zone="nova:host1")])
    assert server["status"] == "ACTIVE"

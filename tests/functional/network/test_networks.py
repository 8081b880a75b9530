# SPDX-License-Identifier: Apache-2.0
"""The network endpoint and servers' interfaces, asked as stock clients ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openstack
import pytest
import requests

from nova_lite import identity_file
from tests.fixtures.client import ApiError, Client
from tests.fixtures.cloud import PASSWORD
from tests.fixtures.inside import InsideCloud
from tests.fixtures.stock_client import StockClient
from tests.functional.network.conftest import address_of, boot, network_of


@pytest.fixture
def sdk(cloud: InsideCloud) -> Iterator[Any]:
    made = connect(cloud, "admin")
    yield made
    made.close()


def connect(cloud: InsideCloud, user: str) -> Any:
    return openstack.connection.Connection(
        auth={
            "auth_url": f"{cloud.url}/v3",
            "username": user,
            "password": PASSWORD,
            "project_name": user,
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
        region_name="RegionOne",
    )


def test_the_network_is_found_by_name_and_by_id(cloud: InsideCloud, client: Client, sdk: Any) -> None:
    expected = network_of(cloud)

    network = sdk.network.find_network("lab")

    assert (network.id, network.name, network.is_shared, network.mtu) == (expected.id, "lab", True, 1500)
    assert [found.id for found in sdk.network.networks()] == [network.id]
    assert sdk.network.get_network(network.id).name == "lab"
    assert sdk.network.find_network("other") is None
    (subnet,) = sdk.network.subnets(network_id=network.id)
    assert (subnet.id, subnet.cidr, subnet.gateway_ip) == (network.subnet_ids[0], "10.11.0.0/16", "10.11.0.1")
    assert subnet.allocation_pools == [{"start": "10.11.0.10", "end": "10.11.0.59"}]
    assert sdk.network.get_subnet(subnet.id).name == "lab"


def test_ports_are_those_of_servers(client: Client, sdk: Any) -> None:
    first, second = boot(client, "first"), boot(client, "second")
    shown = {server["id"]: server for server in client.settle([first, second])}

    every = {port.device_id: port for port in sdk.network.ports()}

    assert every.keys() == {first, second}
    (port,) = sdk.network.ports(device_id=first)
    (address,) = shown[first]["addresses"]["lab"]
    assert (port.fixed_ips[0]["ip_address"], port.mac_address) == (address["addr"], address["OS-EXT-IPS-MAC:mac_addr"])
    assert (port.status, port.device_owner, port.binding_host_id) == (
        "ACTIVE",
        "compute:nova",
        shown[first]["OS-EXT-SRV-ATTR:host"],
    )
    assert sdk.network.get_port(port.id).device_id == first
    by_address = sdk.network.ports(fixed_ips=f"ip_address={address['addr']}")
    assert [found.id for found in by_address] == [port.id]
    paged = [found.device_id for found in sdk.network.ports(limit=1)]
    assert sorted(paged) == sorted([first, second])


def test_others_ports_are_nobodys_business(cloud: InsideCloud, client: Client) -> None:
    identity_file.add_user(cloud.conf.auth.users_file, "other", PASSWORD, "other", ("member",))
    server = boot(client)
    client.settle([server])
    (port,) = client.get(f"/servers/{server}/os-interface")["interfaceAttachments"]
    other = connect(cloud, "other")
    try:
        assert list(other.network.ports()) == []
        assert list(other.network.ports(device_id=server)) == []
        assert other.network.find_port(port["port_id"]) is None
        assert other.network.find_network("lab") is not None
    finally:
        other.close()


def test_the_network_can_be_looked_at_alone(cloud: InsideCloud, client: Client, sdk: Any) -> None:
    url = f"{cloud.url}/network/v2.0"
    with pytest.raises(openstack.exceptions.ForbiddenException, match="described in its configuration"):
        sdk.network.create_network(name="more")
    with pytest.raises(openstack.exceptions.ForbiddenException, match="come and go with servers"):
        sdk.network.create_port(network_id=network_of(cloud).id)
    assert list(sdk.network.security_groups()) == list(sdk.network.routers()) == list(sdk.network.ips()) == []
    assert requests.get(f"{cloud.url}/network", timeout=10).json()["versions"][0]["id"] == "v2.0"
    assert requests.get(f"{url}/networks", timeout=10).status_code == 401
    refused = client.session.get(f"{url}/networks?colour=red", timeout=10)
    assert (refused.status_code, refused.json()["NeutronError"]["message"]) == (
        400,
        "Invalid input for operation: ['colour'] is invalid attribute for filter.",
    )


def test_an_interface_is_shown_and_neither_attached_nor_detached(cloud: InsideCloud, client: Client) -> None:
    server, alone = boot(client), boot(client, "alone", networks="none")
    (shown, _) = sorted(client.settle([server, alone]), key=lambda found: not found["addresses"])
    lab = network_of(cloud)

    (interface,) = client.get(f"/servers/{server}/os-interface")["interfaceAttachments"]

    assert interface == {
        "port_state": "ACTIVE",
        "port_id": interface["port_id"],
        "net_id": lab.id,
        "mac_addr": shown["addresses"]["lab"][0]["OS-EXT-IPS-MAC:mac_addr"],
        "fixed_ips": [{"subnet_id": lab.subnet_id, "ip_address": address_of(shown)}],
        "tag": None,
    }
    path = f"/servers/{server}/os-interface/{interface['port_id']}"
    assert client.get(path) == {"interfaceAttachment": interface}
    assert client.get(f"/servers/{alone}/os-interface") == {"interfaceAttachments": []}
    for method, refused, status in (
        ("GET", f"/servers/{alone}/os-interface/{interface['port_id']}", 404),
        ("DELETE", f"/servers/{alone}/os-interface/{interface['port_id']}", 404),
        ("DELETE", path, 501),
        ("POST", f"/servers/{server}/os-interface", 501),
    ):
        with pytest.raises(ApiError) as error:
            client.call(method, refused, {"interfaceAttachment": {}} if method == "POST" else None)
        assert error.value.status == status, (method, refused)


@pytest.mark.long
def test_the_stock_client_boots_on_a_network_by_name(cloud: InsideCloud, client: Client) -> None:
    run = StockClient(f"{cloud.url}/v3", "admin", PASSWORD, "admin")
    flavor, image = client.flavor(), client.image()

    assert [found["Name"] for found in run("network list")] == ["lab"]
    assert run("network show lab")["status"] == "ACTIVE"
    assert [found["Subnet"] for found in run("subnet list")] == ["10.11.0.0/16"]
    named = run(f"server create --image {image} --flavor {flavor} --network lab --wait named")
    run(f"server create --image {image} --flavor {flavor} --nic auto --wait any")
    (address,) = named["addresses"]["lab"]
    (port,) = run("port list --server named")
    assert port["Fixed IP Addresses"][0]["ip_address"] == address
    listed = {server["Name"]: server["Networks"] for server in run("server list")}
    assert listed["named"] == {"lab": [address]}
    assert len(listed["any"]["lab"]) == 1
    assert run("quota show")
    assert run("availability zone list")

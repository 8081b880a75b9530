# SPDX-License-Identifier: Apache-2.0
"""The built-in network: what the options describe, and what a guest and a user are told of a port on it."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from oslo_config import cfg

from nova_lite import conf as nova_conf
from nova_lite import exception
from nova_lite.compute.metadata import MetadataDrive
from nova_lite.network import builtin, network_data
from nova_lite.network.fake import FakeNetwork
from nova_lite.network.none import NoNetwork
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.instance import Instance, NetworkRequest
from nova_lite.objects.network import Network

UUID = "6f2f5d6c-0000-4000-8000-00000000000a"


def options(**values: object) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    nova_conf.register(conf)
    conf([], project="nova-lite", default_config_files=[])
    for name, value in values.items():
        conf.set_override(name, value, "network")
    return conf


def described(**values: object) -> Network:
    network = builtin.read(options(**values))
    assert network is not None
    return network


def test_without_a_subnet_there_is_none() -> None:
    assert builtin.read(options()) is None


def test_defaults_follow_from_the_subnet() -> None:
    network = described(subnet="10.0.0.0/29")

    first = int(IPv4Address("10.0.0.0"))
    assert [number for number in range(9) if network.is_usable(first + number)] == [2, 3, 4, 5, 6]
    assert (str(network.gateway), network.size, network.name) == ("10.0.0.1", 5, "default")


def test_no_router_leaves_its_address_to_servers() -> None:
    network = described(subnet="10.0.0.0/29", gateway="none")
    assert (network.gateway, network.size) == (None, 6)


def test_the_network_keeps_its_uuid_when_it_is_renamed_and_grows_a_range() -> None:
    network = described(subnet="10.0.0.0/24", name="a")
    other = described(subnet="10.0.0.0/24", name="b", allocation_range="10.0.0.9-10.0.0.10")
    assert (network.id, network.subnet_id) == (other.id, other.subnet_id)
    assert network.id != described(subnet="10.0.1.0/24").id


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"subnet": "10.0.0.1/24"}, "subnet = 10.0.0.1/24: 10.0.0.1/24 has host bits set"),
        ({"subnet": "lan"}, "subnet = lan"),
        ({"subnet": "10.0.0.0/31"}, "from /8 to /30"),
        ({"subnet": "10.0.0.0/24", "gateway": "10.0.1.1"}, "not in the subnet"),
        ({"subnet": "10.0.0.0/24", "allocation_range": "10.0.0.9"}, "allocation_range"),
        ({"subnet": "10.0.0.0/24", "allocation_range": "10.0.0.9-10.0.0.8"}, "has to rise"),
        ({"subnet": "10.0.0.0/24", "allocation_range": "10.0.0.0-10.0.0.8"}, "lie within"),
        ({"subnet": "10.0.0.0/24", "dns": ["resolver"]}, "dns = resolver"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(cfg.ConfigFileValueError, match="\\[network\\] ") as error:
        builtin.read(options(**values))
    assert said in str(error.value)


@pytest.mark.parametrize("start", [0, 10, 13, 19, 99])
def test_a_search_goes_once_around_all_addresses(start: int) -> None:
    network = described(subnet="0.0.0.0/24", allocation_range="0.0.0.10-0.0.0.19")

    seen = [number for window in network.windows(start, 4) for number in window]

    assert sorted(seen) == list(range(10, 20))
    assert seen[0] == (start if 10 <= start <= 19 else 10)


def instance(network: Network, tag: str = "") -> Instance:
    port = network.port(UUID, int(IPv4Address("10.0.7.9")), tag)
    flavor = Flavor("1", "small", 1, 64, 1)
    networks = (NetworkRequest("auto", port=port),)
    return Instance(UUID, "n", "n", "p", "u", flavor, node="h", host="h", networks=networks)


def test_a_guest_is_told_its_address() -> None:
    network = described(subnet="10.0.0.0/16", dns=["9.9.9.9"], mtu=1400)
    server = instance(network)
    port = server.ports[0]

    vifs, data, addresses = FakeNetwork(options()).connect(server)

    assert [(vif.port, vif.mac, vif.mtu) for vif in vifs] == [(port.id, "fa:16:3e:00:07:09", 1400)]
    [link], [place] = data["links"], data["networks"]
    assert link == {
        "id": f"tap{port.id[:11]}",
        "vif_id": port.id,
        "type": "bridge",
        "mtu": 1400,
        "ethernet_mac_address": "fa:16:3e:00:07:09",
    }
    assert place == {
        "id": "network0",
        "type": "ipv4",
        "link": link["id"],
        "ip_address": "10.0.7.9",
        "netmask": "255.255.0.0",
        "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.0.0.1"}],
        "network_id": network.id,
        "services": [{"type": "dns", "address": "9.9.9.9"}],
    }
    assert data["services"] == place["services"]
    assert [address["addr"] for address in addresses["default"]] == ["10.0.7.9"]


def test_a_network_without_a_router_has_no_route() -> None:
    server = instance(described(subnet="10.0.0.0/16", gateway="none"))
    assert network_data.of_ports(server.ports)["networks"][0]["routes"] == []


def test_a_tag_is_among_the_devices() -> None:
    network = described(subnet="10.0.0.0/16")
    assert MetadataDrive(instance(network)).meta_data()["devices"] == []
    assert MetadataDrive(instance(network, "front")).meta_data()["devices"] == [
        {"type": "nic", "bus": "none", "address": "none", "mac": "fa:16:3e:00:07:09", "tags": ["front"]}
    ]


def test_a_host_that_connects_nobody_builds_no_server_with_an_address() -> None:
    with pytest.raises(exception.BuildFailed, match="has to set \\[network\\] driver"):
        NoNetwork(options()).connect(instance(described(subnet="10.0.0.0/16")))

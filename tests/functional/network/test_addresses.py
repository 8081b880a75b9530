# SPDX-License-Identifier: Apache-2.0
"""Addresses of the built-in network, through the whole cloud: one server each, for as long as the server lives.

Nova's operators know both other ways: two guests with one address after a race or a half-done delete (Launchpad
1329546 and its kin), and a server that comes back from a move with another address than it had.
"""

from __future__ import annotations

import json
from ipaddress import IPv4Address
from typing import Any

import pytest

from nova_lite.db import actions, instances, left_behind, operations
from nova_lite.db.session import Database
from tests.fixtures import faults
from tests.fixtures.client import ApiError, Client, at_once
from tests.fixtures.cloud import wait_for
from tests.fixtures.inside import InsideCloud
from tests.fixtures.movers import Movers
from tests.functional.network.conftest import FIRST, LAST, ROOM, address_of, boot, handed_out, network_of


def test_a_server_has_an_address_in_every_form(client: Client) -> None:
    server = boot(client)
    none = boot(client, "alone", networks="none")
    shown, alone = client.settle([server, none])[::-1]

    (address,) = shown["addresses"]["lab"]
    assert IPv4Address(FIRST) <= IPv4Address(address["addr"]) <= IPv4Address(LAST)
    octets = IPv4Address(address["addr"]).packed
    assert address == {
        "version": 4,
        "addr": address["addr"],
        "OS-EXT-IPS:type": "fixed",
        "OS-EXT-IPS-MAC:mac_addr": f"fa:16:3e:{octets[1]:02x}:{octets[2]:02x}:{octets[3]:02x}",
    }
    short = {"lab": [{"version": 4, "addr": address["addr"]}]}
    assert client.get(f"/servers/{server}/ips") == {"addresses": short}
    assert client.get(f"/servers/{server}/ips/lab") == short
    assert (shown["accessIPv4"], alone["addresses"]) == ("", {})


def test_a_guest_finds_its_address_on_its_config_drive(
    cloud: InsideCloud, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    drives: dict[str, Any] = {}
    spawn = cloud.driver.spawn

    def seen(instance: Any, image: Any, vifs: Any, config_drive: Any) -> None:
        drives[instance.uuid] = config_drive
        spawn(instance, image, vifs, config_drive)

    monkeypatch.setattr(cloud.driver, "spawn", seen)
    server, alone = boot(client), boot(client, "alone", networks="none")
    (shown, _alone) = sorted(client.settle([server, alone]), key=lambda found: found["id"] != server)

    told = json.loads(drives[server].files()["openstack/latest/network_data.json"])
    assert drives[alone] is None
    assert (told["networks"][0]["ip_address"], told["networks"][0]["type"]) == (address_of(shown), "ipv4")
    mac = shown["addresses"]["lab"][0]["OS-EXT-IPS-MAC:mac_addr"]
    assert told["links"][0]["ethernet_mac_address"] == mac


def test_lists_are_filtered_by_address(client: Client) -> None:
    server = boot(client)
    boot(client, "alone", networks="none")
    (shown,) = client.settle([server])

    def listed(query: str) -> list[str]:
        return [found["id"] for found in client.get(f"/servers?{query}")["servers"]]

    assert listed(f"ip={address_of(shown)}") == listed("ip=^10.11.") == [server]
    assert listed("ip=^11.") == listed("ip6=10.11") == []


def test_parallel_boots_never_share_an_address(client: Client, db: Database) -> None:
    flavor = client.flavor()
    client.image()
    at_once(5, lambda number: client.boot(f"many-{number}", flavor, networks="auto", min_count=6))
    at_once(15, lambda number: client.boot(f"one-{number}", flavor, networks="auto"))

    servers = client.settle([server["id"] for server in client.servers()])

    assert {server["status"] for server in servers} == {"ACTIVE"}
    assert len({address_of(server) for server in servers}) == len(servers) == 45
    assert handed_out(db) == {address_of(server): server["id"] for server in servers}


def test_a_full_network_ends_a_boot_at_once_and_with_its_reason(client: Client) -> None:
    boot(client, "many", min_count=ROOM + 3)
    servers = client.settle([server["id"] for server in client.servers()])

    failed = [server for server in servers if server["status"] == "ERROR"]
    assert len(failed) == 3
    assert {server["fault"]["message"] for server in failed} == {
        f"No address is free on network lab (10.11.0.0/16): all {ROOM} are in use. Delete servers that are not needed, "
        "or have the operator enlarge the subnet; then create the server again."
    }
    assert {server["OS-EXT-SRV-ATTR:host"] for server in failed} == {None}
    client.delete([server["id"] for server in servers if server["status"] == "ACTIVE"][:1])
    (again,) = client.settle([boot(client, "again")])
    assert again["status"] == "ACTIVE"


def test_an_address_that_is_asked_for_by_name_is_given_or_refused(cloud: InsideCloud, client: Client) -> None:
    lab = network_of(cloud).id
    wanted = {"uuid": lab, "fixed_ip": "10.11.7.7"}
    (server,) = client.settle([boot(client, networks=[wanted])])
    assert address_of(server) == "10.11.7.7"
    (other,) = client.settle([boot(client, networks=[{"uuid": lab}])])
    assert address_of(other) != "10.11.7.7"

    for refused, sentence in (
        (wanted, "already in use"),
        ({"uuid": lab, "fixed_ip": "10.12.0.1"}, "not a valid ip address"),
        ({"uuid": lab, "fixed_ip": "10.11.0.1"}, "not a valid ip address"),
        ({"uuid": lab, "fixed_ip": "10.11.255.255"}, "not a valid ip address"),
        ({"uuid": lab, "fixed_ip": "fe80::1"}, "not a valid ip address"),
        ({"uuid": server["id"]}, "could not be found"),
        ({"port": lab}, "Ports cannot be chosen"),
        ({"fixed_ip": "10.11.7.8"}, "missing 'uuid'"),
    ):
        with pytest.raises(ApiError, match=sentence) as error:
            boot(client, networks=[refused])
        assert error.value.status == 400
    with pytest.raises(ApiError, match="name it once"):
        boot(client, networks=[{"uuid": lab}, {"uuid": lab}])
    with pytest.raises(ApiError, match="max_count must be 1"):
        boot(client, networks=[{"uuid": lab, "fixed_ip": "10.11.7.9"}], min_count=2)
    assert len(client.servers()) == 2


def test_two_who_ask_for_one_address_at_once(cloud: InsideCloud, client: Client) -> None:
    wanted = [{"uuid": network_of(cloud).id, "fixed_ip": "10.11.7.7"}]
    client.image(), client.flavor()
    answers: list[int] = []

    def ask(number: int) -> None:
        try:
            boot(client, f"asks-{number}", networks=wanted)
            answers.append(202)
        except ApiError as error:
            answers.append(error.status)

    at_once(6, ask)

    assert sorted(answers) == [202, 400, 400, 400, 400, 400]


def test_an_address_follows_its_server(client: Client, db: Database) -> None:
    server = boot(client)
    (before,) = client.settle([server])

    def is_kept(status: str = "ACTIVE") -> dict[str, Any]:
        wait_for(lambda: client.server(server)["status"] == status, 30)
        (shown,) = client.settle([server])
        assert (shown["status"], shown["addresses"]) == (status, before["addresses"])
        assert handed_out(db) == {address_of(before): server}
        return shown

    client.act(server, os_migrateLive={"host": None, "block_migration": "auto"})
    moved = is_kept()
    assert moved["OS-EXT-SRV-ATTR:host"] != before["OS-EXT-SRV-ATTR:host"]
    client.act(server, migrate=None)
    is_kept("VERIFY_RESIZE")
    client.act(server, confirmResize=None)
    is_kept()
    client.act(server, migrate=None)
    is_kept("VERIFY_RESIZE")
    client.act(server, revertResize=None)
    is_kept()
    client.act(server, rebuild={"imageRef": client.image()})
    is_kept()
    client.act(server, shelve=None)
    is_kept("SHELVED_OFFLOADED")
    client.act(server, unshelve=None)
    is_kept()


def test_an_address_is_kept_until_a_host_that_was_away_has_removed_the_domain(
    cloud: InsideCloud, client: Client, db: Database
) -> None:
    """The delete of a server whose host is down ends at once; the domain goes when its host is back."""
    server = boot(client)
    client.settle([server])
    hold = cloud.compute._locks.holding(server)  # what a host does that has something else to do with the server
    with hold:
        caller = instances.Caller("admin", "admin", "req-away")
        operation = db.write(lambda conn: instances.begin_delete(conn, server, caller))
        claimed = db.read(lambda conn: operations.get_many(conn, [operation]))
        db.write(lambda conn: actions.finish_deletes(conn, claimed, domains_gone=False))

        assert client.servers([server]) == []
        assert list(handed_out(db).values()) == [server]
        assert cloud.driver.domains_of(server)
    wait_for(lambda: not handed_out(db), 10)
    assert not cloud.driver.domains_of(server)


def test_an_address_waits_for_a_host_where_a_build_has_failed(cloud: InsideCloud, client: Client, db: Database) -> None:
    """A hypervisor that hung may have made the domain all the same: it is asked before another gets the address."""
    with faults.injected(cloud.directory, {"server": {"spawn": {"hang": True}}}):
        server = boot(client, "server")
        (failed,) = client.settle([server])
    assert failed["status"] == "ERROR"
    attempts = db.read(lambda conn: left_behind.attempted_places(conn, [server]))
    asked: list[tuple[str, str, str]] = []
    destroy = cloud.driver.destroy

    def seen(instance: Any) -> None:
        asked.append((instance.uuid, instance.host, instance.node))
        destroy(instance)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cloud.driver, "destroy", seen)
        client.delete([server])
        wait_for(lambda: not handed_out(db), 10)

    assert len(attempts) == 3
    assert sorted(asked) == attempts


def test_an_evacuated_server_keeps_its_address(cloud: InsideCloud, client: Client, db: Database) -> None:
    movers = Movers(cloud)
    server = boot(client, host="host1")
    (before,) = client.settle([server])
    movers.force_down("host1")
    try:
        movers.evacuate(server, "host2")
        assert movers.becomes(server, "ACTIVE") == "host2"
        assert client.server(server)["addresses"] == before["addresses"]
        assert handed_out(db) == {address_of(before): server}
        client.delete([server])
        wait_for(lambda: not handed_out(db), 10)
        assert cloud.driver.domains_of(server) == []
    finally:
        movers.force_down("host1", False)
        movers.wait_for_service("host1", "up")

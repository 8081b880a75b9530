# SPDX-License-Identifier: Apache-2.0
"""Addresses under contention, on each database: many conductors at once, and nobody gets what another has."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address, IPv4Network

import pytest
import sqlalchemy as sa

from nova_lite import audit, exception
from nova_lite.db import actions, addresses, instances, migration, operations
from nova_lite.db.models import addresses as table
from nova_lite.db.session import Database
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.instance import NetworkRequest
from nova_lite.objects.network import Network
from tests.integration.conftest import OpenDatabase

SUBNET = IPv4Network("10.0.0.0/24")
FIRST = int(SUBNET.network_address)
CONDUCTORS, BATCHES, BATCH = 4, 4, 5
# Fewer than are asked for.
NETWORK = Network("lab", SUBNET, SUBNET[1], FIRST + 1, FIRST + CONDUCTORS * BATCHES * BATCH - 3)
CALLER = instances.Caller("p", "u", "req")


@pytest.fixture
def databases(open_database: OpenDatabase) -> list[Database]:
    """The database as several processes have it open."""
    opened = [open_database() for _ in range(CONDUCTORS)]
    migration.sync(opened[0])
    for resource in ("instances", "cores", "ram"):
        opened[0]._conf.set_override(resource, -1, "quota")
    return opened


def create(database: Database, count: int, *requests: NetworkRequest, uuids: list[str] | None = None) -> list[str]:
    made = uuids or [str(uuid.uuid4()) for _ in range(count)]
    new = instances.NewInstances(
        made, made, made, Flavor("1", "f", 1, 64, 1), None, "r", networks=requests or (NetworkRequest("auto"),)
    )
    return database.write(lambda conn: instances.create(conn, database._conf, new, CALLER)).uuids


def assign(database: Database, uuids: list[str]) -> dict[str, str]:
    return database.write(lambda conn: addresses.assign(conn, NETWORK, uuids))


def handed_out(database: Database) -> dict[str, str]:
    rows = database.read(lambda conn: conn.execute(sa.select(table.c.instance_uuid, table.c.address)).all())
    return {row[0]: str(IPv4Address(row[1])) for row in rows}


def at_once(*functions: Callable[[], object]) -> None:
    gate, failures = threading.Barrier(len(functions)), list[BaseException]()

    def run(function: Callable[[], object]) -> None:
        gate.wait()
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - told in the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_many_conductors_never_give_one_address_twice(databases: list[Database]) -> None:
    """The network's row is not there yet: all try to make it."""
    uuids = create(databases[0], CONDUCTORS * BATCHES * BATCH)
    given: dict[str, str] = {}

    def assign_some(number: int) -> None:
        mine = uuids[number * BATCHES * BATCH : (number + 1) * BATCHES * BATCH]
        for start in range(0, len(mine), BATCH):
            given.update(assign(databases[number], mine[start : start + BATCH]))

    at_once(*(partial(assign_some, number) for number in range(CONDUCTORS)))

    booked = handed_out(databases[0])
    assert len(booked) == len(set(booked.values())) == len(given) == NETWORK.size
    assert "10.0.0.1" not in booked.values()
    named = {uuid: port.address for uuid, text in given.items() if (port := addresses.port_of(text)) is not None}
    assert named == booked


def test_two_conductors_on_the_same_servers(databases: list[Database]) -> None:
    uuids = create(databases[0], 10)
    answers: list[dict[str, str]] = []

    at_once(*(partial(lambda database: answers.append(assign(database, uuids)), each) for each in databases))

    assert len(handed_out(databases[0])) == 10
    assert all(answer == answers[0] for answer in answers)


def test_one_address_that_many_ask_for_and_that_is_handed_out_meanwhile(databases: list[Database]) -> None:
    number, taken = FIRST + 2, list[str]()
    others = create(databases[0], 5)

    def ask(database: Database) -> None:
        mine = str(uuid.uuid4())
        request = NetworkRequest("auto", str(IPv4Address(number)), port=NETWORK.port(mine, number))
        try:
            taken.extend(create(database, 1, request, uuids=[mine]))
        except exception.BadRequest as error:
            assert "already in use" in str(error)

    at_once(partial(assign, databases[0], others), *(partial(ask, each) for each in databases[1:]))

    booked = handed_out(databases[0])
    assert len(booked) == len(set(booked.values())) == 5 + len(taken)
    assert len(taken) <= 1


def test_servers_that_are_deleted_while_they_get_their_addresses(databases: list[Database]) -> None:
    """Whichever comes first, no deleted server has an address, and every other has one."""
    uuids = create(databases[0], 40)

    def assign_all(database: Database) -> None:
        for start in range(0, len(uuids), BATCH):
            assign(database, uuids[start : start + BATCH])

    def delete(database: Database) -> None:
        for one in uuids[::2]:
            operation = database.write(partial(instances.begin_delete, uuid=one, caller=CALLER))
            claimed = database.read(partial(operations.get_many, uuids=[operation]))
            database.write(partial(actions.finish_deletes, claimed=claimed, domains_gone=True))

    at_once(*(partial(assign_all, each) for each in databases[:2]), partial(delete, databases[2]))

    assert handed_out(databases[0]).keys() == set(uuids[1::2])
    found = audit.find(audit.look(databases[0]))
    assert [finding for finding in found if finding.kind.startswith("address")] == []

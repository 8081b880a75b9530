# SPDX-License-Identifier: Apache-2.0
"""Addresses on SQLite: whose each is, from when, and until when."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from nova_lite import conf
from nova_lite.db import addresses, instances, migration
from nova_lite.db.models import addresses as table
from nova_lite.db.session import Database
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.instance import NetworkRequest
from nova_lite.objects.network import Network

SUBNET = IPv4Network("10.0.0.0/29")
NETWORK = Network("lab", SUBNET, SUBNET[1], int(SUBNET[1]), int(SUBNET[6]))
CALLER = instances.Caller("p", "u", "req")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    options = cfg.ConfigOpts()
    conf.register(options)
    options([], default_config_files=[])
    options.set_override("connection", f"sqlite:///{tmp_path}/cloud.sqlite", group="database")
    made = Database(options)
    migration.sync(made)
    yield made
    made.close()


def create(database: Database, count: int, kind: str = "auto") -> list[str]:
    uuids = [str(uuid.uuid4()) for _ in range(count)]
    new = instances.NewInstances(
        uuids, uuids, uuids, Flavor("1", "f", 1, 64, 1), None, "r", networks=(NetworkRequest(kind),)
    )
    return database.write(lambda conn: instances.create(conn, database._conf, new, CALLER)).uuids


def assign(database: Database, uuids: list[str]) -> dict[str, str]:
    return database.write(lambda conn: addresses.assign(conn, NETWORK, uuids))


def handed_out(database: Database) -> dict[str, str]:
    rows = database.read(lambda conn: conn.execute(sa.select(table.c.instance_uuid, table.c.address)).all())
    return {row[0]: str(IPv4Address(row[1])) for row in rows}


def test_who_asks_for_no_network_gets_no_address(database: Database) -> None:
    uuids = create(database, 2, "none")
    texts = assign(database, uuids)
    assert not any(addresses.has_address(text) for text in texts.values())
    assert handed_out(database) == {}


def test_whoever_comes_too_late_is_told_nothing(database: Database) -> None:
    uuids = create(database, 7)
    assert list(assign(database, uuids)) == uuids[:5]
    assert assign(database, uuids[5:]) == {}
    assert assign(database, uuids[:5]).keys() == set(uuids[:5])
    assert len(set(handed_out(database).values())) == 5


def test_an_address_waits_for_every_host_that_may_use_it(database: Database) -> None:
    (mine,) = create(database, 1)
    database.write(lambda conn: addresses.assign(conn, NETWORK, [mine]))
    left = {mine: {("h1", "n1"), ("h2", "n2")}}
    database.write(lambda conn: addresses.release(conn, [mine], left))

    assert [each.host for each in database.read(lambda conn: addresses.leaving(conn, ["h2", "h3"]))] == ["h2"]
    assert not database.write(lambda conn: addresses.vacated(conn, mine, "h2"))
    assert not database.write(lambda conn: addresses.vacated(conn, mine, "h2"))
    assert len(handed_out(database)) == 1
    assert database.write(lambda conn: addresses.forget_host(conn, "h1")) == 1
    assert handed_out(database) == {}


def test_what_was_given_back_is_given_out_again_last(database: Database) -> None:
    first, second, third = create(database, 3)
    database.write(lambda conn: addresses.assign(conn, NETWORK, [first]))
    gone = handed_out(database)[first]
    database.write(lambda conn: addresses.release(conn, [first], {}))
    database.write(lambda conn: addresses.assign(conn, NETWORK, [second, third]))
    assert gone not in handed_out(database).values()


def test_a_server_that_is_being_deleted_gets_none(database: Database) -> None:
    """Whoever finishes the delete has read by then what there is to be given back."""
    (mine,) = create(database, 1)
    database.write(partial(instances.begin_delete, uuid=mine, caller=CALLER))
    assert assign(database, [mine]) == handed_out(database) == {}

# SPDX-License-Identifier: Apache-2.0
"""Three scheduler and two conductor processes race for hosts, and never lose a server.

On RabbitMQ, and on MariaDB with many rounds; on PostgreSQL with one cloud and as many as show that its locks do.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures import races
from tests.fixtures.cloud import Cloud
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.rabbitmq import RabbitMQ
from tests.integration.conftest import DatabaseServer


@pytest.fixture(scope="module")
def three_hosts(mariadb: MariaDB, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    yield from _cloud(mariadb, rabbitmq, tmp_path_factory, "host[1-3]")


@pytest.fixture(scope="module")
def ten_hosts(
    database_server: DatabaseServer, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    yield from _cloud(database_server, rabbitmq, tmp_path_factory, "host[1-10]")


def _cloud(
    server: DatabaseServer, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory, hosts: str
) -> Iterator[Cloud]:
    database = server.url(server.create_database())
    cloud = Cloud(tmp_path_factory.mktemp("cloud"), database, rabbitmq.vhost_url(), {"fake": {"hosts": hosts}})
    try:
        cloud.start_all(schedulers=3, conductors=2)
        yield cloud
    finally:
        cloud.stop()


@pytest.fixture
def tenths(database_server: DatabaseServer) -> int:
    """How many tenths of the rounds are run."""
    return 10 if isinstance(database_server, MariaDB) else 1


@pytest.mark.long
def test_four_boots_on_three_hosts_100_times(three_hosts: Cloud) -> None:
    races.anti_affinity_rounds(three_hosts, rounds=100, count=4, places=3)
    three_hosts.stop()  # makes room for the next cloud; stopping twice is no error


def test_ten_boots_fill_ten_hosts_20_times(ten_hosts: Cloud, tenths: int) -> None:
    races.anti_affinity_rounds(ten_hosts, rounds=2 * tenths, count=10, places=10)


def test_eleven_boots_on_ten_hosts_10_times(ten_hosts: Cloud, tenths: int) -> None:
    races.anti_affinity_rounds(ten_hosts, rounds=tenths, count=11, places=10)


def test_an_affinity_group_lands_on_one_host_20_times(ten_hosts: Cloud, tenths: int) -> None:
    races.affinity_rounds(ten_hosts, rounds=2 * tenths, count=4)


def test_forty_boots_into_forty_slots(ten_hosts: Cloud) -> None:
    races.fill(ten_hosts, count=40, each=4)

# SPDX-License-Identifier: Apache-2.0
"""The broker and the database go away and come back: running processes reconnect, and no accepted request is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fixtures.books import disagreements
from tests.fixtures.client import wait_until_empty
from tests.fixtures.cloud import Cloud, wait_for
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.ports import free_port
from tests.fixtures.rabbitmq import RabbitMQ


@pytest.fixture(scope="module")
def cloud(mariadb: MariaDB, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    settings = {"DEFAULT": {"service_down_time": "60"}, "fake": {"spawn_delay": "0.5"}}
    cloud = Cloud(
        tmp_path_factory.mktemp("cloud"), mariadb.url(mariadb.create_database()), rabbitmq.vhost_url(), settings
    )
    try:
        cloud.start_all(schedulers=2, conductors=2)
        yield cloud
    finally:
        cloud.stop()


def boots_survive(cloud: Cloud, outage: Callable[[], None]) -> None:
    """Accept boots, let the outage happen while they are under way, and see them all end ACTIVE."""
    client = cloud.client()
    ids = client.boot_at_once(6, client.flavor())
    outage()
    settled = client.settle(ids, patience=120)
    assert [server["status"] for server in settled] == ["ACTIVE"] * 6, [s.get("fault") for s in settled]
    wait_until_empty(lambda: disagreements(cloud.database), 15)
    client.delete(ids, patience=120)
    assert not disagreements(cloud.database)
    assert all(process.process.poll() is None for process in cloud.processes), cloud.logs()


@pytest.mark.long
def test_the_broker_restarts(cloud: Cloud, rabbitmq: RabbitMQ) -> None:
    boots_survive(cloud, rabbitmq.restart)


def test_the_broker_dies(cloud: Cloud, rabbitmq: RabbitMQ) -> None:
    def outage() -> None:
        rabbitmq.kill()
        rabbitmq.start()

    boots_survive(cloud, outage)


def test_the_database_dies(cloud: Cloud, mariadb: MariaDB) -> None:
    def outage() -> None:
        mariadb.kill()
        mariadb.start()

    boots_survive(cloud, outage)


@pytest.mark.long
def test_a_boot_is_accepted_while_the_broker_is_away(cloud: Cloud, rabbitmq: RabbitMQ) -> None:
    client = cloud.client()
    flavor = client.flavor()
    client.boot_at_once(1, flavor)  # makes the image
    rabbitmq.stop()
    try:
        server = client.boot("patient", flavor)
        assert client.server(server)["status"] == "BUILD"
    finally:
        rabbitmq.start()
    every = [server["id"] for server in client.servers()]
    assert {s["status"] for s in client.settle(every, patience=120)} == {"ACTIVE"}
    client.delete(every, patience=120)


@pytest.mark.parametrize("program", ["api", "conductor", "scheduler", "compute"])
def test_a_process_that_cannot_reach_its_bus_says_so_in_a_line(cloud: Cloud, program: str) -> None:
    nowhere = f"rabbit://user:secret-word@127.0.0.1:{free_port()}/"
    config = cloud.configure("no-bus", {"DEFAULT": {"transport_url": nowhere}})
    assert_one_line(program, config, "The message bus cannot be reached")


@pytest.mark.parametrize("program", ["api", "conductor", "scheduler"])
def test_a_process_that_cannot_reach_its_database_says_so_in_a_line(cloud: Cloud, program: str) -> None:
    nowhere = f"mysql+pymysql://user:secret-word@127.0.0.1:{free_port()}/nova_lite"
    config = cloud.configure("no-database", {"database": {"connection": nowhere}})
    assert_one_line(program, config, "The database cannot be reached")


def assert_one_line(program: str, config: Path, sentence: str) -> None:
    command = [str(Path(sys.executable).parent / f"nova-lite-{program}"), "--config-file", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith(f"nova-lite-{program}: error: {sentence}")
    assert "secret-word" not in done.stdout + done.stderr


def test_stopping_finishes_what_was_begun(cloud: Cloud) -> None:
    client = cloud.client()
    ids = client.boot_at_once(3, client.flavor())
    wait_for(lambda: any(s["OS-EXT-STS:task_state"] == "spawning" for s in client.servers(ids)), 30)
    compute = cloud.running("compute")[0]
    compute.restart()
    assert [s["status"] for s in client.settle(ids)] == ["ACTIVE"] * 3
    actions = client.get(f"/servers/{ids[0]}/os-instance-actions")["instanceActions"]
    assert [action["action"] for action in actions] == ["create"]
    client.delete(ids)

# SPDX-License-Identifier: Apache-2.0
"""A cloud whose services have the logins of etc/mariadb and etc/rabbitmq, each its own, and its api behind gunicorn.

Everything works with them, and what a service has no business with is refused.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import amqp.exceptions  # type: ignore[import-untyped]
import kombu.connection
import pymysql
import pytest

from nova_lite import events
from tests.fixtures import production
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud, Process, merged, wait_for
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.ports import free_port
from tests.fixtures.production import DATABASE, ETC, VHOST, user_of
from tests.fixtures.rabbitmq import RabbitMQ
from tests.fixtures.web_socket import Refused, Screen, socket_url

pytestmark = pytest.mark.long

_GUNICORN = [str(Path(sys.executable).with_name("gunicorn")), "--config", str(ETC / "nova-lite" / "gunicorn.conf.py")]


class LeastCloud(Cloud):
    """A cloud of which each service has a file with its own logins."""

    def __init__(
        self,
        directory: Path,
        mariadb: MariaDB,
        rabbitmq: RabbitMQ,
        more: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._mariadb, self._rabbitmq = mariadb, rabbitmq
        # For nova-lite-manage, whose audit asks computes as the api does.
        port = free_port()
        settings = {
            "oslo_messaging_notifications": {"driver": "messagingv2"},
            "novnc": {"enabled": "true", "port": str(port), "base_url": f"http://127.0.0.1:{port}/vnc_lite.html"},
        }
        super().__init__(directory, self.database_url("manage"), rabbitmq.url_of("api"), merged(settings, more or {}))

    def database_url(self, service: str) -> str:
        return database_url(self._mariadb, service)

    def _start(self, program: str, command: list[str], config: Path | None) -> Process:
        logins = {"DEFAULT": {"transport_url": self._rabbitmq.url_of(program)}}
        if program == "compute":
            self.settings.pop("database")
        else:
            logins["database"] = {"connection": self.database_url(program)}
        return super()._start(program, command, self.configure(program, logins))

    def start_gunicorn(self, *more: str) -> Process:
        """Start the api as the shipped configuration has it, but for where it listens and how many it is."""
        logins = {
            "DEFAULT": {"transport_url": self._rabbitmq.url_of("api")},
            "database": {"connection": self.database_url("api")},
        }
        files = f"OS_NOVA_LITE_CONFIG_FILES={self.config};{self.configure('logins-of-api', logins)}"
        command = [*_GUNICORN, "--bind", f"127.0.0.1:{self.port}", "--workers", "2", *more]
        process = Process(self.directory, ["env", files, *command, "nova_lite.api.wsgi:application"], "api-1")
        self.processes.append(process)
        return process


def database_url(mariadb: MariaDB, service: str) -> str:
    where = f"127.0.0.1:{mariadb.port}/{DATABASE}?charset=utf8mb4"
    return f"mysql+pymysql://{user_of(service)}:{mariadb.password}@{where}"


@pytest.fixture(scope="module")
def cloud(mariadb: MariaDB, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeastCloud]:
    production.run_sql(mariadb, "users.sql")
    cloud = LeastCloud(tmp_path_factory.mktemp("cloud"), mariadb, rabbitmq)
    try:
        production.run_sql(mariadb, "grants.sql")
        # What is imported before the fork has to work behind it.
        cloud.start_gunicorn("--preload")
        for program in ("conductor", "scheduler", "compute", "novncproxy"):
            cloud.start(program)
        cloud.wait_until_up(120)
        yield cloud
    finally:
        cloud.stop()
        mariadb.remove_database(DATABASE)


@pytest.fixture
def client(cloud: LeastCloud) -> Client:
    return cloud.client()


# --- what has to work -------------------------------------------------------------------------------------------------


def test_servers_live_and_move_with_the_logins_of_each_service(cloud: LeastCloud, client: Client) -> None:
    flavor, larger = client.flavor("small"), client.flavor("larger", vcpus=2)
    group = client.group("anti-affinity")

    # As many members as hosts at the same moment: grants are written, lost and written again.
    ids = client.boot_at_once(3, flavor, group)

    servers = client.settle(ids)
    assert {server["status"] for server in servers} == {"ACTIVE"}
    assert len({server["OS-EXT-SRV-ATTR:host"] for server in servers}) == 3
    alone = client.boot("alone", flavor)
    client.settle([alone])
    client.act(alone, **{"os-getConsoleOutput": {"length": 5}})  # a call to a compute, and its answer
    client.act(alone, resize={"flavorRef": larger})
    assert client.settle([alone])[0]["status"] == "VERIFY_RESIZE"
    client.act(alone, confirmResize=None)
    wait_for(lambda: client.server(alone)["status"] == "ACTIVE", 30, cloud.logs)
    client.act(alone, **{"os-migrateLive": {"host": None, "block_migration": "auto"}})
    assert client.settle([alone])[0]["status"] == "ACTIVE"
    assert "No contradiction found" in cloud.manage("audit", "--domains")
    client.delete([*ids, alone])


def test_whoever_follows_events_sees_them(cloud: LeastCloud, client: Client, rabbitmq: RabbitMQ) -> None:
    said: queue.Queue[str] = queue.Queue()
    seen: queue.Queue[events.Event] = queue.Queue()
    stopping = threading.Event()
    follower = events.Follower(rabbitmq.url_of("events"), said.put)
    thread = threading.Thread(target=follower.follow, args=(seen.put, stopping), daemon=True)
    thread.start()
    assert "Following" in said.get(timeout=30)

    server = client.boot("followed", client.flavor("small"))

    assert seen.get(timeout=30).payload["uuid"] == server
    stopping.set()
    thread.join(30)
    client.settle([server])
    client.delete([server])


def test_a_screen_is_opened_once(cloud: LeastCloud, client: Client) -> None:
    """The proxy finds the token, asks the compute, and notes that it was used; nobody serves the fake's screens."""
    (proxy,) = cloud.running("novncproxy")
    proxy.wait_until_started()
    server = client.boot("seen", client.flavor("small"))
    client.settle([server])
    wanted = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    url = socket_url(client.call("POST", f"/servers/{server}/remote-consoles", wanted)["remote_console"]["url"])

    with contextlib.suppress(Refused, ConnectionError):
        Screen(url).close()
    with pytest.raises(Refused, match="403"):
        Screen(url)

    assert f"console opened instance={server}" in proxy.log.read_text()
    client.delete([server])


def test_a_scheduler_removes_grants_that_nobody_consumed(cloud: LeastCloud, mariadb: MariaDB) -> None:
    columns = "consumer, migration, node_id, ticket, vcpus, memory_mb, disk_gb, created_at, expires_at"
    with mariadb.root(DATABASE) as cursor:
        cursor.execute("SELECT MIN(id) FROM compute_nodes")
        ((node,),) = cursor.fetchall()
        cursor.execute(
            f"INSERT INTO grants ({columns}) VALUES ('{'0' * 36}', '', %s, 1, 1, 64, 1, "  # noqa: S608
            "NOW(6), NOW(6) - INTERVAL 1 HOUR)",
            (node,),
        )

        def is_gone() -> bool:
            cursor.execute("SELECT COUNT(*) FROM grants")
            return bool(cursor.fetchall() == ((0,),))

        wait_for(is_gone, 30, cloud.logs)


def test_nothing_was_refused_to_a_service(cloud: LeastCloud, rabbitmq: RabbitMQ) -> None:
    """Services try again in silence what fails: only their logs tell."""
    log = cloud.logs()
    for words in ("denied", "ACCESS_REFUSED", "access refused"):
        assert words.lower() not in log.lower(), [line for line in log.splitlines() if words.lower() in line.lower()][
            :3
        ]
    assert "started service=conductor" in log


# --- what must not ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "statement"),
    [
        ("api", "CREATE TABLE mine (id INT)"),
        ("api", "DROP TABLE instances"),
        ("conductor", "ALTER TABLE instances ADD COLUMN mine INT"),
        ("scheduler", "UPDATE instances SET host = 'mine'"),
        ("scheduler", "DELETE FROM allocations"),
        ("scheduler", "UPDATE compute_nodes SET used_vcpus = 0"),
        ("scheduler", "INSERT INTO allocations SELECT * FROM allocations"),
        ("manage", "CREATE DATABASE mine"),
        ("novncproxy", "INSERT INTO console_tokens SELECT * FROM console_tokens"),
        ("novncproxy", "UPDATE console_tokens SET instance_uuid = ''"),
        ("api", "SELECT user FROM mysql.user"),
    ],
)
def test_the_database_refuses_what_is_not_a_services_business(
    cloud: LeastCloud, mariadb: MariaDB, service: str, statement: str
) -> None:
    connection = pymysql.connect(
        host="127.0.0.1", port=mariadb.port, user=user_of(service), password=mariadb.password, database=DATABASE
    )
    with connection, connection.cursor() as cursor, pytest.raises(pymysql.err.OperationalError, match="denied"):
        cursor.execute(statement)


def test_there_is_no_login_for_computes_at_the_database(cloud: LeastCloud, mariadb: MariaDB) -> None:
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        pymysql.connect(host="127.0.0.1", port=mariadb.port, user=user_of("compute"), password=mariadb.password)


def _take_the_conductors_orders(channel: Any) -> None:
    channel.basic_consume("conductor")


def _bind_to_the_conductors_orders(channel: Any) -> None:
    channel.queue_declare("compute.mine")
    channel.queue_bind("compute.mine", "nova_lite", "conductor")


def _order_another_compute(channel: Any) -> None:
    channel.confirm_select()
    channel.basic_publish(amqp.Message("{}"), "nova_lite", "compute.host1")
    channel.queue_declare("compute.mine")  # the refusal comes with the next answer


def _order_a_conductor(channel: Any) -> None:
    channel.confirm_select()
    channel.basic_publish(amqp.Message("{}"), "nova_lite", "conductor")
    channel.queue_declare("reply_mine")


def _make_a_queue(channel: Any) -> None:
    channel.queue_declare("mine")


def _listen_to_notifications(channel: Any) -> None:
    channel.queue_declare("reply_mine")
    channel.queue_bind("reply_mine", "nova_lite", "notifications.info")


@pytest.mark.parametrize(
    ("service", "act"),
    [
        ("compute", _take_the_conductors_orders),
        ("compute", _bind_to_the_conductors_orders),
        ("compute", _order_another_compute),
        ("compute", _make_a_queue),
        ("api", _take_the_conductors_orders),
        ("api", _listen_to_notifications),
        ("scheduler", _take_the_conductors_orders),
        ("novncproxy", _order_a_conductor),
        ("events", _make_a_queue),
    ],
)
def test_the_broker_refuses_what_is_not_a_services_business(
    cloud: LeastCloud, rabbitmq: RabbitMQ, service: str, act: Any
) -> None:
    with _connection(rabbitmq.url_of(service)) as connection, pytest.raises(amqp.exceptions.AccessRefused):
        act(connection.channel())


def test_a_compute_sees_no_other_virtual_host(rabbitmq: RabbitMQ) -> None:
    with pytest.raises(amqp.exceptions.NotAllowed):
        _connection(rabbitmq.url_of("compute").removesuffix(VHOST)).connect()


def _connection(url: str) -> Any:
    return kombu.connection.Connection(url.replace("rabbit://", "amqp://", 1))  # type: ignore[no-untyped-call]

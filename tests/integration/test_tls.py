# SPDX-License-Identifier: Apache-2.0
"""TLS on every hop of the control plane, by the files of etc: api, bus and database, with quorum queues as well.

The hops between compute hosts are in tests/libvirt/test_tls.py.
"""

from __future__ import annotations

import configparser
import dataclasses
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
import requests
from oslo_config import cfg

from nova_lite import bus_tls, conf, events, exception, rpc
from nova_lite.db.session import Database
from tests.fixtures import production, programs
from tests.fixtures.certificates import Authority, Certificate
from tests.fixtures.cloud import Process
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.production import DATABASE, ETC, user_of
from tests.fixtures.rabbitmq import RabbitMQ
from tests.integration.test_least_privilege import LeastCloud, database_url

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


class TlsRabbitMQ(RabbitMQ):
    """A broker as etc/rabbitmq/tls.conf has it."""

    def __init__(self, authority: Authority) -> None:
        # Its certificate is for its address, and not for its name.
        self._authority, self._mine = authority, authority.issue("rabbitmq", "IP:127.0.0.1")
        self.ssl = bus_tls.options(_Rabbit(str(authority.ca)))
        super().__init__()

    def _listener(self) -> str:
        text = (ETC / "rabbitmq" / "tls.conf").read_text()
        text = text.replace("listeners.ssl.default = 5671", f"listeners.ssl.default = 127.0.0.1:{self.port}")
        return _with_files(text, "/etc/rabbitmq/tls", self._authority, self._mine)


@dataclasses.dataclass(frozen=True)
class _Rabbit:
    """Options of [oslo_messaging_rabbit]."""

    ssl_ca_file: str
    ssl: bool = True
    ssl_key_file: str = ""
    ssl_cert_file: str = ""


def _with_files(text: str, where: str, authority: Authority, mine: Certificate) -> str:
    for name, path in (("ca.pem", authority.ca), ("server.pem", mine.cert), ("server.key", mine.key)):
        assert f"{where}/{name}" in text
        text = text.replace(f"{where}/{name}", str(path))
    return text


def _options(path: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    parser.read(path)
    return {group: dict(parser.items(group)) for group in parser.sections()}


class TlsCloud(LeastCloud):
    """A cloud whose every hop is encrypted and checked."""

    def __init__(self, directory: Path, mariadb: MariaDB, rabbitmq: RabbitMQ, authority: Authority) -> None:
        self._authority = authority
        rabbit = {**_options(ETC / "nova-lite" / "tls.conf")["oslo_messaging_rabbit"], "ssl_ca_file": str(authority.ca)}
        rabbit |= _options(ETC / "nova-lite" / "quorum.conf")["oslo_messaging_rabbit"]
        super().__init__(directory, mariadb, rabbitmq, {"oslo_messaging_rabbit": rabbit})
        self.url = self.url.replace("http://", "https://")

    def database_url(self, service: str) -> str:
        return f"{super().database_url(service)}&ssl_ca={self._authority.ca}"

    def start_gunicorn(self, *more: str) -> Process:
        mine = self._authority.issue("api", "IP:127.0.0.1")
        return super().start_gunicorn("--certfile", str(mine.cert), "--keyfile", str(mine.key))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    try:
        return Authority(tmp_path_factory.mktemp("ca"))
    except programs.ProgramMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def tls_mariadb(mariadb: MariaDB, authority: Authority) -> Iterator[MariaDB]:
    """A server as etc/mariadb/tls.cnf has it; mariadb is asked for so that it is skipped where that is missing."""
    mine = authority.issue("mariadb", "IP:127.0.0.1")
    text = _with_files((ETC / "mariadb" / "tls.cnf").read_text(), "/etc/mysql/tls", authority, mine)
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    server = MariaDB([f"--{name.replace('_', '-')}={value}" for name, value in parser.items("mariadbd")])
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="module")
def tls_rabbitmq(rabbitmq: RabbitMQ, authority: Authority) -> Iterator[RabbitMQ]:
    broker = TlsRabbitMQ(authority)
    try:
        broker.start()
        yield broker
    finally:
        broker.remove()


@pytest.fixture(scope="module")
def cloud(
    tls_mariadb: MariaDB, tls_rabbitmq: RabbitMQ, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TlsCloud]:
    production.run_sql(tls_mariadb, "users.sql", require="SSL")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REQUESTS_CA_BUNDLE", str(authority.ca))
        cloud = TlsCloud(tmp_path_factory.mktemp("cloud"), tls_mariadb, tls_rabbitmq, authority)
        try:
            production.run_sql(tls_mariadb, "grants.sql")
            cloud.start_gunicorn()
            for program in ("conductor", "scheduler", "compute"):
                cloud.start(program)
            cloud.wait_until_up(180)
            yield cloud
        finally:
            cloud.stop()


def test_a_server_boots_through_it(cloud: TlsCloud) -> None:
    client = cloud.client()
    assert client.compute.startswith("https://")

    ids = client.boot_at_once(3, client.flavor("small"), client.group("anti-affinity"))

    assert {server["status"] for server in client.settle(ids)} == {"ACTIVE"}
    assert "No contradiction found" in cloud.manage("audit", "--domains")
    assert "No problem found" in cloud.manage("config", "check", "--connect")
    client.delete(ids)


def test_links_in_answers_speak_tls_as_well(cloud: TlsCloud) -> None:
    client = cloud.client()
    (link,) = [each["href"] for each in client.get("/flavors")["flavors"][0]["links"] if each["rel"] == "self"]
    assert link.startswith(f"{cloud.url}/v2.1/")


def test_events_are_followed_over_tls(cloud: TlsCloud, tls_rabbitmq: RabbitMQ, authority: Authority) -> None:
    said: queue.Queue[str] = queue.Queue()
    stopping = threading.Event()
    follower = events.Follower(tls_rabbitmq.url_of("events"), said.put, bus_tls.options(_Rabbit(str(authority.ca))))
    thread = threading.Thread(target=follower.follow, args=(lambda event: None, stopping), daemon=True)
    thread.start()
    assert "Following" in said.get(timeout=30)
    stopping.set()
    thread.join(30)


# --- who is not trusted -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stranger(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"))


def _conf(**groups: dict[str, Any]) -> cfg.ConfigOpts:
    values = cfg.ConfigOpts()
    conf.register(values)
    rpc.default_to(values, "fake://")
    values([], default_config_files=[], default_config_dirs=[])
    rpc.register_rabbit(values)
    for group, options in groups.items():
        for name, value in options.items():
            values.set_override(name, value, group=None if group == "DEFAULT" else group)
    return values


def _check_bus(url: str, ca: Path) -> None:
    rpc.check(_conf(DEFAULT={"transport_url": url}, oslo_messaging_rabbit={"ssl": True, "ssl_ca_file": str(ca)}))


def test_the_bus_has_to_be_of_our_authority(tls_rabbitmq: RabbitMQ, authority: Authority, stranger: Authority) -> None:
    _check_bus(tls_rabbitmq.url_of("api"), authority.ca)
    with pytest.raises(exception.BusUnavailable, match="certificate verify failed"):
        _check_bus(tls_rabbitmq.url_of("api"), stranger.ca)


# A name of this machine, which no certificate is for; kombu takes "localhost" for the address.
_OTHER_NAME = "127.1"


def test_the_bus_has_to_be_the_host_that_was_asked_for(tls_rabbitmq: RabbitMQ, authority: Authority) -> None:
    with pytest.raises(exception.BusUnavailable, match=f"certificate is not valid for '{_OTHER_NAME}'"):
        _check_bus(tls_rabbitmq.url_of("api").replace("@127.0.0.1:", f"@{_OTHER_NAME}:"), authority.ca)


def test_nobody_speaks_to_the_bus_without_tls(tls_rabbitmq: RabbitMQ) -> None:
    with pytest.raises(exception.BusUnavailable):
        rpc.check(_conf(DEFAULT={"transport_url": tls_rabbitmq.url_of("api")}))


def _check_database(url: str) -> None:
    db = Database(_conf(database={"connection": url}))
    try:
        db.check()
    finally:
        db.close()


def test_the_database_has_to_be_of_our_authority(
    cloud: TlsCloud, tls_mariadb: MariaDB, authority: Authority, stranger: Authority
) -> None:
    url = database_url(tls_mariadb, "api")
    _check_database(f"{url}&ssl_ca={authority.ca}")
    with pytest.raises(exception.DatabaseUnavailable, match="certificate verify failed"):
        _check_database(f"{url}&ssl_ca={stranger.ca}")


def test_the_database_has_to_be_the_host_that_was_asked_for(
    cloud: TlsCloud, tls_mariadb: MariaDB, authority: Authority
) -> None:
    url = database_url(tls_mariadb, "api").replace("@127.0.0.1:", f"@{_OTHER_NAME}:")
    with pytest.raises(exception.DatabaseUnavailable, match=f"certificate is not valid for '{_OTHER_NAME}'"):
        _check_database(f"{url}&ssl_ca={authority.ca}")


def test_no_service_logs_in_to_the_database_without_tls(cloud: TlsCloud, tls_mariadb: MariaDB) -> None:
    where = {"host": "127.0.0.1", "port": tls_mariadb.port, "database": DATABASE}
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        pymysql.connect(user=user_of("api"), password=tls_mariadb.password, ssl_disabled=True, **where)


def test_clients_see_who_the_api_is(cloud: TlsCloud, stranger: Authority) -> None:
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"{cloud.url}/", verify=str(stranger.ca), timeout=30)

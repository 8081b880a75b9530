# SPDX-License-Identifier: Apache-2.0
"""The DevStack plugin beside a database, a broker, a Keystone and a Glance that are there: it makes a cloud."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.devstack.test_plugin import Node, controller
from tests.fixtures.client import Client
from tests.fixtures.cloud import wait_for
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.openstack import PASSWORD, REGION, Glance, Keystone
from tests.fixtures.ports import free_port
from tests.fixtures.rabbitmq import RabbitMQ

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def node(
    mariadb: MariaDB,
    rabbitmq: RabbitMQ,
    keystone: Keystone,
    glance: Glance,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Node]:
    """A controller whose own programs are those of this virtual environment."""
    directory = tmp_path_factory.mktemp("devstack")
    cloud = {**keystone.login("admin", "admin"), "password": PASSWORD}
    kept = ("auth_url", "username", "password", "project_name", "user_domain_id", "project_domain_id")
    clouds = {"clouds": {"devstack-admin": {"auth": {key: cloud[key] for key in kept}, "region_name": REGION}}}
    (directory / "clouds.yaml").write_text(yaml.safe_dump(clouds))
    programs = Path(sys.executable).parent
    made = controller(
        directory / "node",
        MORE_FUNCTIONS=str(Path(__file__).with_name("devstack_tree") / "real.sh"),
        OPENSTACK=str(programs / "openstack"),
        OS_CLIENT_CONFIG_FILE=str(directory / "clouds.yaml"),
        HOME=str(directory),
        PYTHON_BIN=str(programs),
        ENABLED_SERVICES="key,mysql,rabbit,g-api,n-api,n-cond,n-sch,n-cpu",
        VIRT_DRIVER="fake",
        NUMBER_FAKE_NOVA_COMPUTE="2",
        MARIADB_SOCKET=str(mariadb.directory / "mariadb.sock"),
        NOVA_LITE_DATABASE=(database := mariadb.create_database()),
        DATABASE_USER=mariadb.user,
        DATABASE_PASSWORD=mariadb.password,
        DATABASE_PORT=str(mariadb.port),
        RABBIT_USERID=rabbitmq.user,
        RABBIT_PASSWORD=rabbitmq.password,
        RABBIT_PORT=str(rabbitmq.port),
        NOVA_LITE_VHOST=rabbitmq.vhost_url().rpartition("/")[2],
        SERVICE_HOST="127.0.0.1",
        SERVICE_LISTEN_ADDRESS="127.0.0.1",
        HOST_IP="127.0.0.1",
        NOVA_LITE_PORT=str(free_port()),
        KEYSTONE_SERVICE_URI=keystone.auth_url,
        SERVICE_PASSWORD=PASSWORD,
        SERVICE_TIMEOUT="180",
    )
    try:
        yield made
    finally:
        for path in (made.directory / "run").glob("*.pid"):
            os.killpg(int(path.read_text()), signal.SIGKILL)
        mariadb.remove_database(database)


def test_a_cloud_is_stacked_used_and_unstacked(node: Node, keystone: Keystone, glance: Glance) -> None:
    node.walk("stack pre-install", "stack install", "stack post-config", "stack extra", "stack test-config")

    url = f"http://127.0.0.1:{node.settings['NOVA_LITE_PORT']}"
    (service,) = (each for each in keystone.ask("GET", "/services")["services"] if each["type"] == "compute")
    endpoints = keystone.ask("GET", f"/endpoints?service_id={service['id']}")["endpoints"]
    assert {endpoint["url"] for endpoint in endpoints} == {f"{url}/v2.1"}
    client = Client.with_token(url, keystone.token("admin", "admin"))
    logs = node.directory / "run"
    wait_for(
        lambda: [each["state"] for each in client.get("/os-services?binary=nova-compute")["services"]] == ["up", "up"],
        120,
        lambda: (logs / "nl-cpu.log").read_text()[-3000:],
    )
    image = glance.upload(keystone.token("admin", "admin"), bytes(1024), visibility="public")
    assert len(client.get("/flavors")["flavors"]) == 7
    server = client.boot("first", "42", imageRef=image, networks="auto")
    (found,) = client.settle([server], 120)
    assert found["status"] == "ACTIVE", found.get("fault")
    assert found["addresses"]["default"][0]["addr"].startswith("10.79.0.")

    pids = [int(path.read_text()) for path in logs.glob("*.pid")]
    assert len(pids) == 4
    node.walk("unstack")

    assert not any(Path(f"/proc/{pid}/cmdline").exists() and _is_ours(pid) for pid in pids)


def _is_ours(pid: int) -> bool:
    return b"nova-lite" in Path(f"/proc/{pid}/cmdline").read_bytes()

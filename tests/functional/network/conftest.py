# SPDX-License-Identifier: Apache-2.0
"""A cloud of three hosts in this process, with a network and consoles; each test leaves it without servers."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite import audit
from nova_lite.db.models import addresses
from nova_lite.db.session import Database
from nova_lite.network import builtin
from nova_lite.objects.network import Network
from tests.fixtures.client import Client
from tests.fixtures.cloud import wait_for
from tests.fixtures.inside import InsideCloud
from tests.fixtures.ports import free_port

FIRST, LAST = "10.11.0.10", "10.11.0.59"
ROOM = 50
SETTINGS = {
    "network": {"driver": "fake", "subnet": "10.11.0.0/16", "allocation_range": f"{FIRST}-{LAST}", "name": "lab"},
    "conductor": {"disable_after_build_failures": "0"},
    "fake": {"vcpus": "64", "memory_mb": "65536", "disk_gb": "400"},
}


@pytest.fixture(scope="package")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InsideCloud]:
    directory, port = tmp_path_factory.mktemp("network"), free_port()
    pages = directory / "novnc"
    pages.mkdir()
    (pages / "vnc_lite.html").write_text("the page")
    novnc = {"enabled": "true", "port": str(port), "web": str(pages)}
    base_url = f"http://127.0.0.1:{port}/vnc_lite.html"
    made = InsideCloud(directory, SETTINGS | {"novnc": {**novnc, "base_url": base_url}})
    yield made
    made.stop()


@pytest.fixture
def db(cloud: InsideCloud) -> Iterator[Database]:
    database = Database(cloud.conf)
    yield database
    database.close()


@pytest.fixture
def client(cloud: InsideCloud, db: Database) -> Iterator[Client]:
    """A client whose servers are gone afterwards, with their addresses."""
    made = cloud.client()
    yield made
    made.delete([server["id"] for server in made.servers()])
    wait_for(lambda: not handed_out(db), 30)
    assert audit.find(audit.look(db)) == []


def handed_out(db: Database) -> dict[str, str]:
    """Return address -> the server that has it."""
    rows = db.read(lambda conn: conn.execute(sa.select(addresses.c.address, addresses.c.instance_uuid)).all())
    return {str(IPv4Address(row[0])): row[1] for row in rows}


def network_of(cloud: InsideCloud) -> Network:
    network = builtin.read(cloud.conf)
    assert network is not None
    return network


def boot(client: Client, name: str = "server", **more: Any) -> str:
    return client.boot(name, client.flavor(), **{"networks": "auto", **more})


def address_of(server: dict[str, Any]) -> str:
    (shown,) = server["addresses"]["lab"]
    return str(shown["addr"])

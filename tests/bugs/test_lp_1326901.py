# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1326901: two workers that start together create the same service's row.

Each looks, finds none, and writes one. Here a unique key decides, and whoever comes second finds the other's row and
uses it, without a word of it to anybody.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from nova_lite import conf
from nova_lite.conductor.manager import Endpoint
from nova_lite.context import service_context
from nova_lite.db import migration, registry
from nova_lite.db.models import compute_nodes, services
from nova_lite.db.session import Database
from nova_lite.objects.node import NodeInventory
from nova_lite.objects.resources import Resources
from nova_lite.service import Heartbeat

AT_ONCE = 8
HOSTS = [NodeInventory(f"identity-of-host{n}", f"host{n}", f"host{n}", Resources(4, 4096, 40)) for n in range(3)]


@pytest.fixture(params=["sqlite", "mariadb"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path}/nova-lite.sqlite"
    if request.param == "mariadb":
        server = request.getfixturevalue("mariadb")
        url = server.url(server.create_database())
    options = cfg.ConfigOpts()
    conf.register(options)
    options([], default_config_files=[], default_config_dirs=[])
    options.set_override("connection", url, group="database")
    options.set_override("host", "control")
    db = Database(options)
    migration.sync(db)
    yield db
    db.close()


def test_eight_of_each_kind_register_at_once(db: Database) -> None:
    gate = threading.Barrier(3 * AT_ONCE)
    failures: list[Exception] = []

    def register(number: int) -> None:
        gate.wait()
        try:
            if number % 3 == 0:
                records = Endpoint(db._conf, db, None).register(service_context(), "compute", HOSTS, True)  # type: ignore[arg-type]
                assert [record.host for record in records] == ["host0", "host1", "host2"]
            else:
                Heartbeat(db._conf, db, registry.CONDUCTOR if number % 3 == 1 else registry.SCHEDULER).stop()
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not be
            failures.append(error)

    threads = [threading.Thread(target=register, args=(number,)) for number in range(3 * AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures

    identities = sa.select(services.c.binary, services.c.host)
    found = Counter((row[0], row[1]) for row in db.read(lambda conn: conn.execute(identities).all()))
    assert found == Counter(
        [
            (registry.CONDUCTOR, "control"),
            (registry.SCHEDULER, "control"),
            *((registry.COMPUTE, f"host{number}") for number in range(3)),
        ]
    )
    nodes = db.read(lambda conn: list(conn.execute(sa.select(compute_nodes.c.host)).scalars()))
    assert sorted(nodes) == ["host0", "host1", "host2"]

# SPDX-License-Identifier: Apache-2.0
"""Operations that wait for a host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from nova_lite import conf
from nova_lite.db import migration, operations, registry
from nova_lite.db.clock import now
from nova_lite.db.models import operations as operations_table
from nova_lite.db.models import services
from nova_lite.db.session import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    options = cfg.ConfigOpts()
    conf.register(options)
    options([], default_config_files=[], default_config_dirs=[])
    options.set_override("connection", f"sqlite:///{tmp_path}/nova-lite.sqlite", group="database")
    made = Database(options)
    migration.sync(made)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("waited", "silent", "forced_down", "is_overdue"),
    [
        (100, 100, False, True),
        # A step that takes long is nothing that its host is to be blamed for.
        (100, 10, False, False),
        (10, 100, False, False),
        (100, 10, True, True),
        (10, 10, True, False),
    ],
)
def test_an_operation_is_overdue_when_its_host_has_been_silent_for_long(
    database: Database, waited: float, silent: float, forced_down: bool, is_overdue: bool
) -> None:
    def prepare(conn: sa.Connection) -> str:
        registry.register_service(conn, registry.COMPUTE, "host1", "host1")
        conn.execute(sa.update(services).values(last_seen_at=now(-silent), forced_down=forced_down))
        (added,) = operations.add(conn, "stop", ["a"], project_id="p", user_id="u", request_id="req-1")
        conn.execute(sa.update(operations_table).values(updated_at=now(-waited)))
        return added

    operation = database.write(prepare)
    found = database.read(lambda conn: operations.overdue(conn, {operation: "host1"}, 60))
    assert (operation in found) == is_overdue


def test_an_operation_whose_host_is_gone_is_overdue(database: Database) -> None:
    def prepare(conn: sa.Connection) -> str:
        (added,) = operations.add(conn, "stop", ["a"], project_id="p", user_id="u", request_id="req-1")
        conn.execute(sa.update(operations_table).values(updated_at=now(-100)))
        return added

    operation = database.write(prepare)
    assert database.read(lambda conn: operations.overdue(conn, {operation: "gone"}, 60)) == {operation}

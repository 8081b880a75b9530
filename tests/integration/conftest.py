# SPDX-License-Identifier: Apache-2.0
"""Databases as the services open them, on each server that they support."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from nova_lite import conf
from nova_lite.db.session import Database
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.postgresql import PostgreSQL

#: Opens one more Database on the same database, as another process would. Options of [database] as keywords.
OpenDatabase = Callable[..., Database]

# What asks of a database nothing that others here do not ask as well: PostgreSQL in the long run is enough.
_ALIKE = ("test_audit.py", "test_quotas.py", "test_races.py", "test_servers.py")

DatabaseServer = MariaDB | PostgreSQL


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the long run what PostgreSQL is hardly asked anew."""
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if item.path.name in _ALIKE and "postgresql" in parameters.values():
            item.add_marker(pytest.mark.long)


def open_at(url: str, **options: object) -> Database:
    """Open the database at a URL, with options of [database]."""
    values = cfg.ConfigOpts()
    conf.register(values)
    values([], default_config_files=[])
    for name, value in {"connection": url, **options}.items():
        values.set_override(name, value, group="database")
    return Database(values)


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def database_server(request: pytest.FixtureRequest) -> DatabaseServer:
    """A running server that several processes can use; each test runs on every kind."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture(params=["sqlite", "mariadb", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """What the test's databases are on."""
    return str(request.param)


@pytest.fixture
def server(kind: str, request: pytest.FixtureRequest) -> DatabaseServer:
    """The server of the test's databases; a test that stops it starts it again."""
    if kind == "sqlite":
        pytest.skip("SQLite has no server")
    found: DatabaseServer = request.getfixturevalue(kind)
    return found


@pytest.fixture
def open_database(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenDatabase]:
    """One new, empty database, and the way to it; each test runs on every kind."""
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path}/cloud.sqlite"
    else:
        server: DatabaseServer = request.getfixturevalue("server")
        name = server.create_database()
        url = server.url(name)
    opened: list[Database] = []

    def open_one(**options: object) -> Database:
        opened.append(open_at(url, **options))
        return opened[-1]

    yield open_one
    for database in opened:
        database.close()
    if kind != "sqlite":
        server.remove_database(name)

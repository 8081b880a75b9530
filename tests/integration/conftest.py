# SPDX-License-Identifier: Apache-2.0
"""Databases as the services open them, on each server that they support."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from nova_lite import conf
from nova_lite.db.session import Database

#: Opens one more Database on the same database, as another process would. Options of [database] as keywords.
OpenDatabase = Callable[..., Database]


@pytest.fixture(params=["sqlite", "mariadb"])
def open_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenDatabase]:
    """One new, empty database, and the way to it; each test runs on SQLite and on MariaDB."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/cloud.sqlite"
    else:
        server = request.getfixturevalue("mariadb")
        url = server.url(server.create_database())
    opened: list[Database] = []

    def open_one(**options: object) -> Database:
        values = cfg.ConfigOpts()
        conf.register(values)
        values([], default_config_files=[])
        for name, value in {"connection": url, **options}.items():
            values.set_override(name, value, group="database")
        opened.append(Database(values))
        return opened[-1]

    yield open_one
    for database in opened:
        database.close()

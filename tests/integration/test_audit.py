# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage audit on MariaDB and PostgreSQL: the same contradictions as on SQLite are found and mended."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite import conf
from nova_lite.db.clock import now
from nova_lite.db.models import metadata
from tests.functional import test_audit as on_sqlite
from tests.functional.test_audit import (  # noqa: F401 - pytest runs them here with this module's cloud
    test_a_cloud_in_order_is_clean,
    test_a_repair_looks_again_before_it_changes_anything,
    test_an_orphan_is_listed_left_alone_and_mended,
    test_what_ends_by_itself_is_told_when_it_should_have_ended,
)
from tests.integration.conftest import DatabaseServer

_NO_FOREIGN_KEYS = {"mysql": "SET foreign_key_checks = 0", "postgresql": "SET session_replication_role = replica"}


class Cloud(on_sqlite.Cloud):
    """The same books on a server, which can be made what they were."""

    def __init__(self, directory: Path, server: DatabaseServer) -> None:
        self._server, self._name = server, server.create_database()
        super().__init__(directory, server.url(self._name))
        self._now = str(now().compile(dialect=self.db.engine.dialect, compile_kwargs={"literal_binds": True}))

    def one(self, query: str) -> Any:
        with self._server.root(self._name) as cursor:
            cursor.execute(query.replace(on_sqlite.NOW, self._now))
            row = cursor.fetchone()
        assert row
        return row[0].isoformat() if isinstance(row[0], datetime.datetime) else row[0]

    def spoil(self, *statements: str) -> None:
        with self._server.root(self._name) as cursor:
            for statement in (_NO_FOREIGN_KEYS[self.db.dialect], *statements):
                cursor.execute(statement.replace(on_sqlite.NOW, self._now))

    def dump(self) -> str:
        return "\n".join(f"{name}: {sorted(map(repr, rows))}" for name, rows in self.rows().items())

    def rows(self) -> dict[str, Sequence[Any]]:
        """Return the rows of every table."""
        return self.db.read(lambda c: {t.name: c.execute(sa.select(t)).all() for t in metadata.sorted_tables})

    def restore(self, rows: dict[str, Sequence[Any]]) -> None:
        """Make every table's rows these."""

        def unit(conn: sa.Connection) -> None:
            for table in reversed(metadata.sorted_tables):
                conn.execute(sa.delete(table))
            for table in metadata.sorted_tables:
                if rows[table.name]:
                    conn.execute(sa.insert(table), [dict(row._mapping) for row in rows[table.name]])

        self.db.write(unit)


@pytest.fixture(scope="module")
def built(
    database_server: DatabaseServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cloud, dict[str, Sequence[Any]]]]:
    made = Cloud(tmp_path_factory.mktemp("books"), database_server)
    made.build()
    yield made, made.rows()
    made.close()


@pytest.fixture
def cloud(built: tuple[Cloud, dict[str, Sequence[Any]]]) -> Iterator[Cloud]:
    made, rows = built
    made.restore(rows)
    yield made
    conf.CONF.reset()
    logging.disable(logging.NOTSET)

# SPDX-License-Identifier: Apache-2.0
"""Migrations on real servers: MariaDB has column types of its own, and commits in the middle."""

from __future__ import annotations

import concurrent.futures

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from nova_lite import exception
from nova_lite.db import migration, models
from tests.fixtures.postgresql import PostgreSQL
from tests.integration.conftest import DatabaseServer, OpenDatabase, open_at


def test_migrated_schema_is_that_of_the_models(open_database: OpenDatabase) -> None:
    database = open_database()
    migration.sync(database)

    with database.engine.connect() as conn:
        context = MigrationContext.configure(conn, opts={"compare_type": True})
        assert compare_metadata(context, models.metadata) == []


def test_a_difference_is_noticed(open_database: OpenDatabase) -> None:
    database = open_database()
    migration.sync(database)
    database.write(lambda conn: conn.execute(sa.text("ALTER TABLE services ADD COLUMN surplus INTEGER")))

    with database.engine.connect() as conn:
        differences = compare_metadata(MigrationContext.configure(conn), models.metadata)
    assert [difference[0] for difference in differences] == ["remove_column"]


def test_syncs_at_once_all_succeed(open_database: OpenDatabase) -> None:
    databases = [open_database() for _ in range(4)]

    with concurrent.futures.ThreadPoolExecutor(len(databases)) as pool:
        list(pool.map(migration.sync, databases))

    migration.check(databases[0])


def test_sync_goes_on_after_one_that_was_killed(open_database: OpenDatabase) -> None:
    database = open_database()
    migration.sync(database)
    for statement in ("DROP TABLE quota_usages", "DELETE FROM alembic_version"):
        database.write(lambda conn, statement=statement: conn.execute(sa.text(statement)))  # type: ignore[misc]

    migration.sync(database)

    with database.engine.connect() as conn:
        assert compare_metadata(MigrationContext.configure(conn), models.metadata) == []


def test_columns_hold_what_the_api_accepts_in_full_unicode(open_database: OpenDatabase) -> None:
    database = open_database()
    migration.sync(database)
    row = {"project_id": "\N{GRINNING FACE}" * 255, "instances": 1}

    database.write(lambda conn: conn.execute(sa.insert(models.quota_usages), [row]))

    found = database.read(lambda conn: conn.scalar(sa.select(models.quota_usages.c.project_id)))
    assert found == row["project_id"]


def test_missing_schema_is_refused_with_what_to_run(open_database: OpenDatabase) -> None:
    with pytest.raises(exception.DatabaseUnavailable, match="run nova-lite-manage db sync"):
        migration.check(open_database())


# How another session takes the lock of a database's schema.
_TAKE_LOCK = {
    "mysql": "SELECT GET_LOCK(CONCAT('nova_lite.', SHA1(%s)), 0)",
    "postgresql": "SELECT pg_advisory_lock(hashtext('nova_lite.' || %s))",
}


def test_sync_that_waits_in_vain_says_why(
    open_database: OpenDatabase, server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database()
    monkeypatch.setattr(migration, "LOCK_PATIENCE", 0.0)
    assert database.url.database
    # PostgreSQL's locks are each database's own.
    with server.root(database.url.database) as cursor:
        cursor.execute(_TAKE_LOCK[database.dialect], (database.url.database,))
        with pytest.raises(exception.DatabaseUnavailable, match="Another db sync has held the schema"):
            migration.sync(database)


def test_an_encoding_that_cannot_hold_every_name_is_refused(postgresql: PostgreSQL) -> None:
    name = postgresql.create_database("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    database = open_at(postgresql.url(name))

    with pytest.raises(exception.DatabaseUnavailable, match="encoding is LATIN1.*create it with ENCODING 'UTF8'"):
        database.check()

    database.close()
    postgresql.remove_database(name)

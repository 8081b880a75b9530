# SPDX-License-Identifier: Apache-2.0
"""Migrations on SQLite: what they make is what the models say, and nobody works on a schema that is not current."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from oslo_config import cfg

from nova_lite import conf, exception
from nova_lite.db import migration, models
from nova_lite.db.session import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = _open(tmp_path)
    yield database
    database.close()


def _open(directory: Path) -> Database:
    options = cfg.ConfigOpts()
    conf.register(options)
    options([], default_config_files=[])
    options.set_override("connection", f"sqlite:///{directory}/cloud.sqlite", group="database")
    return Database(options)


def test_migrated_schema_is_that_of_the_models(database: Database) -> None:
    migration.sync(database)

    with database.engine.connect() as conn:
        assert compare_metadata(MigrationContext.configure(conn), models.metadata) == []


def test_sync_again_changes_nothing(database: Database) -> None:
    migration.sync(database)
    database.write(lambda conn: conn.execute(sa.insert(models.quota_usages).values(project_id="p")))

    migration.sync(database)

    assert migration.version(database) == migration.expected_version()
    assert database.read(lambda conn: conn.scalar(sa.select(models.quota_usages.c.project_id))) == "p"


def test_syncs_at_once_all_succeed(tmp_path: Path) -> None:
    databases = [_open(tmp_path) for _ in range(4)]
    errors: list[Exception] = []

    def sync(database: Database) -> None:
        try:
            migration.sync(database)
        except exception.DatabaseUnavailable as error:
            errors.append(error)

    threads = [threading.Thread(target=sync, args=[database]) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert errors == []
    migration.check(databases[0])
    for database in databases:
        database.close()


def test_sync_goes_on_after_one_that_was_killed(database: Database) -> None:
    migration.sync(database)
    database.write(lambda conn: conn.execute(sa.text("DROP TABLE quota_usages")))
    database.write(lambda conn: conn.execute(sa.text("DROP INDEX ix_instances_host")))
    database.write(lambda conn: conn.execute(sa.text("DELETE FROM alembic_version")))

    migration.sync(database)

    with database.engine.connect() as conn:
        assert compare_metadata(MigrationContext.configure(conn), models.metadata) == []


def test_missing_schema_is_refused_with_what_to_run(database: Database) -> None:
    assert migration.version(database) is None
    with pytest.raises(exception.DatabaseUnavailable, match="no schema .* run nova-lite-manage db sync"):
        migration.check(database)


def test_older_schema_is_refused_with_what_to_run(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    migration.sync(database)
    monkeypatch.setattr(migration, "expected_version", lambda: "9999")
    with pytest.raises(exception.DatabaseUnavailable, match="version 0007, older than 9999.* run nova-lite-manage"):
        migration.check(database)


def test_newer_schema_is_worked_on_and_never_downgraded(database: Database) -> None:
    migration.sync(database)
    database.write(lambda conn: conn.execute(sa.text("UPDATE alembic_version SET version_num = '9999'")))

    migration.check(database)
    migration.sync(database)

    assert migration.version(database) == "9999"

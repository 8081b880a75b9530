# SPDX-License-Identifier: Apache-2.0
"""The schema's version: making it current, and refusing to work on one that is not.

``sync`` may be run by several people or machines at once: one migrates, under a lock of the database's own, and the
others wait and find that there is nothing left to do. The lock ends with its connection, so nobody who died in the
middle keeps the rest out. SQLite and PostgreSQL migrate in one transaction; MariaDB commits with each statement that
changes a table, and so migrations are written such that they can be begun again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from alembic import command, config, script
from alembic.runtime.migration import MigrationContext
from alembic.util import CommandError
from oslo_db import exception as db_exception
from oslo_log import log

from nova_lite import exception
from nova_lite.db.session import Database

LOG = log.getLogger(__name__)

#: Seconds that a sync waits for another one to finish.
LOCK_PATIENCE = 600.0
# MariaDB waits inside the statement, which must end well before [database]read_timeout.
_LOCK_SLICE = 1

_HINT = "run nova-lite-manage db sync"


def sync(database: Database) -> None:
    """Bring the schema up to the version that this code expects; a schema that is there already is left alone.

    :raises DatabaseUnavailable: the database does not answer, or somebody else's sync does not end.
    """
    database.check()
    alembic_config = _config()
    try:
        with database.engine.connect() as conn, _lock(conn), _transaction(conn):
            alembic_config.attributes["connection"] = conn
            before = _read_version(conn)
            if before is None or _is_known(before):
                command.upgrade(alembic_config, "head")
            LOG.info("schema synced from=%s to=%s", before, _read_version(conn))
    except (db_exception.DBError, sa.exc.SQLAlchemyError, CommandError) as error:
        raise exception.DatabaseUnavailable(f"The schema could not be migrated: {_first_line(error)}") from error


def version(database: Database) -> str | None:
    """Say which version the schema has; None when there is none.

    :raises DatabaseUnavailable: the database does not answer.
    """
    return database.read(_read_version)


def expected_version() -> str:
    """Say which version this code expects."""
    head = _scripts().get_current_head()
    if head is None:
        raise RuntimeError("nova_lite is installed without its migrations")
    return head


def check(database: Database) -> None:
    """Make sure that the schema is one that this code can work on.

    A schema that is newer than the code is accepted: migrations only add, so that services can be upgraded one by one
    after the database.

    :raises DatabaseUnavailable: the schema is missing or older, with what to run.
    """
    found, expected = version(database), expected_version()
    if found == expected:
        return
    if found is None:
        raise exception.DatabaseUnavailable(f"The database has no schema of nova_lite yet: {_HINT}")
    if _is_known(found):
        raise exception.DatabaseUnavailable(
            f"The database's schema has version {found}, older than {expected}, which this code needs: {_HINT}"
        )
    LOG.warning("schema newer than the code found=%s expected=%s", found, expected)


def _config() -> config.Config:
    alembic_config = config.Config()
    alembic_config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    alembic_config.set_main_option("path_separator", "os")
    return alembic_config


def _scripts() -> script.ScriptDirectory:
    return script.ScriptDirectory.from_config(_config())


def _is_known(revision: str) -> bool:
    return any(known.revision == revision for known in _scripts().walk_revisions())


def _read_version(conn: sa.Connection) -> str | None:
    return MigrationContext.configure(conn).get_current_revision()


@contextmanager
def _transaction(conn: sa.Connection) -> Iterator[None]:
    """End whatever the lock's statement began and migrate in a transaction of its own; SQLite's begins IMMEDIATE."""
    conn.rollback()
    with conn.begin():
        yield


@contextmanager
def _lock(conn: sa.Connection) -> Iterator[None]:
    """Keep every other sync of this database out. SQLite needs no more than its transaction."""
    if conn.dialect.name in ("mysql", "mariadb"):
        yield from _mysql_lock(conn)
    elif conn.dialect.name == "postgresql":
        yield from _postgresql_lock(conn)
    else:
        yield


# The locks belong to the whole server, so their names carry the database's.
_MYSQL_NAME = "CONCAT('nova_lite.', SHA1(DATABASE()))"
_POSTGRESQL_NAME = "hashtext('nova_lite.' || current_database())"


def _mysql_lock(conn: sa.Connection) -> Iterator[None]:
    deadline = time.monotonic() + LOCK_PATIENCE
    while conn.scalar(sa.text(f"SELECT GET_LOCK({_MYSQL_NAME}, {_LOCK_SLICE})")) != 1:  # noqa: S608 - constants
        _check_patience(deadline, "SHOW PROCESSLIST")
    try:
        yield
    finally:
        conn.execute(sa.text(f"SELECT RELEASE_LOCK({_MYSQL_NAME})"))  # noqa: S608 - constants


def _postgresql_lock(conn: sa.Connection) -> Iterator[None]:
    deadline = time.monotonic() + LOCK_PATIENCE
    # One statement that waits would end with [database]read_timeout.
    while not conn.scalar(sa.text(f"SELECT pg_try_advisory_lock({_POSTGRESQL_NAME})")):  # noqa: S608 - constants
        _check_patience(deadline, "pg_locks and pg_stat_activity")
        time.sleep(_LOCK_SLICE)
    try:
        yield
    finally:
        conn.execute(sa.text(f"SELECT pg_advisory_unlock({_POSTGRESQL_NAME})"))  # noqa: S608 - constants


def _check_patience(deadline: float, where: str) -> None:
    if time.monotonic() > deadline:
        raise exception.DatabaseUnavailable(
            f"Another db sync has held the schema for more than {LOCK_PATIENCE:.0f} s: look at {where}"
        )


def _first_line(error: Exception) -> str:
    inner = getattr(error, "inner_exception", None) or error
    inner = getattr(inner, "orig", None) or inner
    return str(inner).split("\n", 1)[0]

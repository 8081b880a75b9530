# SPDX-License-Identifier: Apache-2.0
"""The way to the database: units of work that read one snapshot, or write what they have locked.

There are three engines on one database. ``read`` runs a unit in a transaction whose every statement sees the same
snapshot and that locks nothing. ``write`` runs a unit that first locks the rows it decides on, and from then on sees
what the earlier holders of those locks committed. The difference is the isolation level: REPEATABLE READ for the one,
READ COMMITTED for the other (a snapshot taken before a lock was granted would be stale: MariaDB would read it, and
PostgreSQL refuse to write on it; and MariaDB's missing gap locks spare most deadlocks). SQLite has one writer at a
time: a write transaction begins IMMEDIATE, and so holds the lock on everything before it reads. ``look`` runs a unit
without a transaction around it, which spares the round trip that ends one: for a single statement, and for what need
not be of one moment.

A unit is a function of a connection. It is run again as a whole after a deadlock, a lock time-out or a lost
connection (retry.py), so it must not touch anything but the database, and its writes must be ones that may find
themselves done: the outcome of a commit whose connection was lost is unknown.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import exc_filters
from oslo_log import log

from nova_lite import exception, retry
from nova_lite.db import postgresql

LOG = log.getLogger(__name__)

T = TypeVar("T")
Unit = Callable[[sa.Connection], T]

# One for each SQLite database that this process writes to, whoever of its services does.
_sqlite_turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class Database:
    """A database and the ways into it. Make it after the process has forked."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self.url = sa.make_url(conf.database.connection)
        self._writer = self._engine("READ COMMITTED", "BEGIN IMMEDIATE")
        self._reader = self._engine("REPEATABLE READ", "BEGIN")
        self._looker = self._engine("AUTOCOMMIT", "")
        self._retrying = retry.database(conf.database.retry_for)
        is_sqlite = self.url.get_backend_name() == "sqlite"
        self._turn: AbstractContextManager[object] = _sqlite_turns[str(self.url)] if is_sqlite else nullcontext()
        #: Called with a label between transactions by tests that explore interleavings; None in production.
        self.step_hook: Callable[[str], None] | None = None

    @property
    def dialect(self) -> str:
        return str(self._writer.dialect.name)

    @property
    def engine(self) -> sa.Engine:
        """The engine that writes, for migrations."""
        return self._writer

    def read(self, unit: Unit[T]) -> T:
        """Run a unit on one snapshot.

        :raises DatabaseUnavailable: the connection stayed lost for longer than [database]retry_for.
        """
        return self._run(self._reader, unit)

    def look(self, unit: Unit[T]) -> T:
        """Run a unit that only reads, each statement on a snapshot of its own.

        :raises DatabaseUnavailable: the connection stayed lost for longer than [database]retry_for.
        """
        return self._run(self._looker, unit)

    def write(self, unit: Unit[T]) -> T:
        """Run a unit in one transaction and commit it.

        :raises DatabaseUnavailable: the connection stayed lost for longer than [database]retry_for.
        """
        return self._run(self._writer, unit)

    def _run(self, engine: sa.Engine, unit: Unit[T]) -> T:
        if self.step_hook:
            self.step_hook(getattr(unit, "__qualname__", repr(unit)))

        def once() -> T:
            # SQLite lets writers poll for its lock; waiting for each other here is fair, and costs no time.
            with self._turn if engine is self._writer else nullcontext(), self._begin(engine) as conn:
                return unit(conn)

        try:
            return self._retrying(once)
        except db_exception.DBConnectionError as error:
            raise exception.DatabaseUnavailable(reason=_in_short(error)) from error

    def _begin(self, engine: sa.Engine) -> AbstractContextManager[sa.Connection]:
        """Begin a transaction, unless the engine is one that only looks (and not, as in memory, all three in one)."""
        only_looks = engine is self._looker and engine is not self._writer
        return engine.connect() if only_looks else engine.begin()

    def check(self) -> None:
        """Make sure that the database answers and can be worked on; called once when a process starts.

        :raises DatabaseUnavailable: with a one-line reason.
        """
        try:
            with self._reader.connect() as conn:
                conn.execute(sa.text("SELECT 1"))
                if self.dialect in ("mysql", "mariadb") and not self._conf.database.galera_single_writer:
                    _refuse_multi_writer_galera(conn)
                elif self.dialect == "postgresql":
                    postgresql.check(conn)
        except (db_exception.DBError, sa.exc.SQLAlchemyError) as error:
            raise exception.DatabaseUnavailable(reason=_in_short(error)) from error

    def close(self) -> None:
        for engine in (self._writer, self._reader, self._looker):
            engine.dispose()

    def _engine(self, isolation: str, begin: str) -> sa.Engine:
        options = self._conf.database
        if self.url.get_backend_name() == "sqlite":
            return _sqlite_engine(self.url, begin, options)
        # Every unit ends with a commit or a rollback, so the pool need not send another ROLLBACK to be sure.
        arguments: dict[str, Any] = {
            "isolation_level": isolation,
            "pool_use_lifo": True,
            "pool_reset_on_return": None,
            # Where each statement is a transaction of its own, there is nothing to end either.
            "skip_autocommit_rollback": True,
        }
        if self.url.get_backend_name() in ("mysql", "mariadb"):
            arguments["connect_args"] = {
                "connect_timeout": options.connect_timeout,
                "read_timeout": options.read_timeout,
                "write_timeout": options.read_timeout,
            }
        elif self.url.get_backend_name() == "postgresql":
            arguments["connect_args"] = postgresql.connect_args(self.url, options.connect_timeout, options.read_timeout)
        try:
            engine = sa.create_engine(
                self.url,
                pool_size=options.pool_size,
                max_overflow=options.pool_size,
                pool_recycle=options.pool_recycle,
                **arguments,
            )
        except ModuleNotFoundError as error:
            raise exception.DatabaseUnavailable(
                reason=f"{error} ({self.url.drivername} needs it; for PostgreSQL, install nova-lite[postgresql])"
            ) from error
        exc_filters.register_engine(engine)
        return engine


def _sqlite_engine(url: sa.URL, begin: str, options: Any) -> sa.Engine:
    if url.database:
        os.makedirs(os.path.dirname(os.path.abspath(url.database)), exist_ok=True)
    engine = sa.create_engine(
        url,
        pool_size=options.pool_size,
        max_overflow=options.pool_size,
        connect_args={"timeout": options.read_timeout, "check_same_thread": False},
    )

    @sa.event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # SQLAlchemy's documented way to emit BEGIN ourselves
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")

    if begin:

        @sa.event.listens_for(engine, "begin")
        def _begin(conn: sa.Connection) -> None:
            conn.exec_driver_sql(begin)

    exc_filters.register_engine(engine)
    return engine


def _refuse_multi_writer_galera(conn: sa.Connection) -> None:
    """Refuse a cluster whatever its size: the other nodes may be away for the moment."""
    asked = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_provider')"
    found: dict[str, str] = dict(conn.execute(sa.text(asked)).all())
    if found.get("wsrep_on", "OFF").upper() in ("ON", "1") and found.get("wsrep_provider", "none") not in ("", "none"):
        raise exception.DatabaseUnavailable(
            reason="this is a node of a Galera cluster, whose other nodes can be written to as well. Grants are "
            "ordered by row locks, which Galera does not share between nodes: let every service connect to one and the "
            "same node, and say so with [database]galera_single_writer, or use replication with a single writer"
        )


def _in_short(error: Exception) -> str:
    inner = getattr(error, "inner_exception", None) or error
    inner = getattr(inner, "orig", None) or inner
    return str(inner).split("\n", 1)[0]

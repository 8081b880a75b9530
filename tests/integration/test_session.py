# SPDX-License-Identifier: Apache-2.0
"""Units of work on real databases: what a snapshot is, what a lock is, and what is tried again."""

from __future__ import annotations

import datetime
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY

from nova_lite import exception
from nova_lite.db import migration
from nova_lite.db.clock import now
from nova_lite.db.models import quota_usages
from nova_lite.db.session import Database
from tests.fixtures.ports import free_port
from tests.integration.conftest import DatabaseServer, OpenDatabase, open_at

PATIENCE = 10.0


@pytest.fixture
def database(open_database: OpenDatabase) -> Database:
    database = open_database()
    migration.sync(database)
    database.write(lambda conn: conn.execute(sa.insert(quota_usages), [{"project_id": "a"}, {"project_id": "b"}]))
    return database


def _instances(project: str) -> Callable[[sa.Connection], int | None]:
    return lambda conn: conn.scalar(sa.select(quota_usages.c.instances).where(quota_usages.c.project_id == project))


def _add_under_lock(conn: sa.Connection, project: str) -> None:
    """Read, then write what follows from it: right only if nobody writes in between."""
    mine = quota_usages.c.project_id == project
    found = conn.scalar(sa.select(quota_usages.c.instances).where(mine).with_for_update())
    conn.execute(sa.update(quota_usages).where(mine).values(instances=(found or 0) + 1))


def _in_threads(*works: Callable[[], object]) -> None:
    """Run all at once, and fail with the first error of any."""
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            errors.append(error)

    threads = [threading.Thread(target=run, args=[work], daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_a_unit_that_fails_leaves_nothing(database: Database) -> None:
    def unit(conn: sa.Connection) -> None:
        _add_under_lock(conn, "a")
        raise exception.Conflict("on second thoughts")

    with pytest.raises(exception.Conflict):
        database.write(unit)

    assert database.read(_instances("a")) == 0


def test_reading_sees_one_snapshot(database: Database) -> None:
    seen: list[int | None] = []

    def unit(conn: sa.Connection) -> None:
        seen.append(_instances("a")(conn))
        _in_threads(lambda: database.write(lambda other: _add_under_lock(other, "a")))
        seen.append(_instances("a")(conn))

    database.read(unit)

    assert seen == [0, 0]
    assert database.read(_instances("a")) == 1


def test_writing_sees_what_the_lock_was_waited_for(database: Database) -> None:
    """A snapshot from before the lock would be stale, although the lock is held."""
    works = [lambda: database.write(lambda conn: _add_under_lock(conn, "a"))] * 8

    _in_threads(*works)

    assert database.read(_instances("a")) == 8


def test_a_deadlock_is_run_again_as_a_whole(database: Database) -> None:
    """Each takes one row and then the other's; on SQLite the second waits at its beginning, and nothing is lost."""
    if database.dialect == "sqlite":
        pytest.skip("SQLite has one writer at a time, and so no deadlocks")
    runs: list[str] = []
    both_hold_one = threading.Barrier(2)

    def unit(first: str, second: str) -> Callable[[sa.Connection], None]:
        def run(conn: sa.Connection) -> None:
            runs.append(first)
            _add_under_lock(conn, first)
            if runs.count(first) == 1:
                both_hold_one.wait(PATIENCE)
            _add_under_lock(conn, second)

        return run

    _in_threads(lambda: database.write(unit("a", "b")), lambda: database.write(unit("b", "a")))

    assert sorted(runs) in (["a", "a", "b"], ["a", "b", "b"])
    assert (database.read(_instances("a")), database.read(_instances("b"))) == (2, 2)


def _retries() -> float:
    """Return how many transactions this process has run again so far."""
    return REGISTRY.get_sample_value("nova_lite_transaction_retries_total") or 0.0


_HURRY = {
    "sqlite": "PRAGMA busy_timeout = 100",
    "mysql": "SET innodb_lock_wait_timeout = 1",
    "postgresql": "SET lock_timeout = '100ms'",
}


def test_a_lock_timeout_is_run_again(open_database: OpenDatabase) -> None:
    """SQLite waits at its BEGIN, before the unit; the others in the middle of it."""
    patient, impatient = open_database(), open_database(read_timeout=5)
    impatient._turn = nullcontext()  # as from another process: within one, writers to SQLite take turns
    migration.sync(patient)
    patient.write(lambda conn: conn.execute(sa.insert(quota_usages), [{"project_id": "a"}]))
    holds, before = threading.Event(), _retries()

    def hold(conn: sa.Connection) -> None:
        _add_under_lock(conn, "a")
        holds.set()
        deadline = time.monotonic() + PATIENCE
        while _retries() == before:
            assert time.monotonic() < deadline, "the other transaction never gave up"
            time.sleep(0.01)

    @sa.event.listens_for(impatient.engine, "connect")
    def _connect(connection: Any, _record: object) -> None:
        connection.cursor().execute(_HURRY[impatient.dialect])
        connection.commit()

    def wait_for_holder() -> None:
        assert holds.wait(PATIENCE)
        impatient.write(lambda conn: _add_under_lock(conn, "a"))

    _in_threads(lambda: patient.write(hold), wait_for_holder)

    assert patient.read(_instances("a")) == 2


def test_the_databases_clock_is_utc_with_fractions(database: Database) -> None:
    here = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    database.write(lambda conn: conn.execute(sa.update(quota_usages).values(updated_at=now())))

    there = database.read(lambda conn: conn.scalar(sa.select(quota_usages.c.updated_at)))

    assert there is not None
    assert abs((there - here).total_seconds()) < PATIENCE


@pytest.mark.parametrize(("offset", "is_later"), [(0.25, True), (30.0, True), (-0.25, False), (-86400.0, False)])
def test_the_databases_clock_moves_by_an_offset(database: Database, offset: float, is_later: bool) -> None:
    stored = quota_usages.c.updated_at
    database.write(lambda conn: conn.execute(sa.update(quota_usages).values(updated_at=now(offset))))

    count = database.read(lambda conn: conn.scalar(sa.select(sa.func.count()).where(stored > now())))

    assert count == (2 if is_later else 0)


def test_a_conflict_of_snapshots_is_run_again(database: Database) -> None:
    """PostgreSQL refuses to write what another has changed since the snapshot."""
    if database.dialect != "postgresql":
        pytest.skip("Only PostgreSQL compares what is written with the snapshot")
    runs: list[int | None] = []

    def unit(conn: sa.Connection) -> None:
        conn.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        runs.append(_instances("a")(conn))
        if len(runs) == 1:
            _in_threads(lambda: database.write(lambda other: _add_under_lock(other, "a")))
        _add_under_lock(conn, "a")

    database.write(unit)

    assert runs == [0, 1]
    assert database.read(_instances("a")) == 2


_SLEEP = {"mysql": "SELECT SLEEP(20)", "postgresql": "SELECT pg_sleep(20)"}


class TestLostConnection:
    """The server goes away under a running process."""

    def test_a_restart_between_units_is_not_noticed(self, database: Database, server: DatabaseServer) -> None:
        server.restart()

        database.write(lambda conn: _add_under_lock(conn, "a"))

        assert database.read(_instances("a")) == 1

    def test_a_crash_in_the_middle_of_a_unit_runs_it_again(self, database: Database, server: DatabaseServer) -> None:
        runs: list[int] = []

        def unit(conn: sa.Connection) -> None:
            runs.append(len(runs))
            _add_under_lock(conn, "a")
            if len(runs) == 1:
                server.kill()
                server.start()
            _add_under_lock(conn, "b")

        database.write(unit)

        assert len(runs) == 2
        assert (database.read(_instances("a")), database.read(_instances("b"))) == (1, 1)

    def test_a_server_that_is_late_is_waited_for(self, database: Database, server: DatabaseServer) -> None:
        server.stop()
        tried = threading.Event()
        database.step_hook = lambda _label: tried.set()

        def start_later() -> None:
            assert tried.wait(PATIENCE)
            server.start()

        _in_threads(lambda: database.write(lambda conn: _add_under_lock(conn, "a")), start_later)

        assert database.read(_instances("a")) == 1

    @pytest.mark.parametrize("scheme", ["mysql+pymysql", "postgresql+psycopg2"])
    def test_a_server_that_stays_away_is_said_to_be_unavailable(self, scheme: str) -> None:
        database = open_at(f"{scheme}://nobody:secret@127.0.0.1:{free_port()}/none", retry_for=0.2)

        with pytest.raises(exception.DatabaseUnavailable, match="cannot be reached: .*127.0.0.1") as caught:
            database.read(_instances("a"))
        assert "secret" not in str(caught.value)

    def test_a_statement_without_end_counts_as_a_lost_connection(
        self, open_database: OpenDatabase, server: DatabaseServer
    ) -> None:
        database = open_database(read_timeout=1, retry_for=0.2)
        began = time.monotonic()

        with pytest.raises(exception.DatabaseUnavailable):
            database.read(lambda conn: conn.execute(sa.text(_SLEEP[database.dialect])))

        assert time.monotonic() - began < PATIENCE
        assert database.read(lambda conn: conn.scalar(sa.text("SELECT 1"))) == 1


def test_a_driver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2", None)

    with pytest.raises(exception.DatabaseUnavailable, match=r"psycopg2.*install nova-lite\[postgresql\]"):
        open_at("postgresql+psycopg2://nobody:secret@127.0.0.1/none")

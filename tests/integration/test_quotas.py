# SPDX-License-Identifier: Apache-2.0
"""Quota under contention, on each database: what is taken is what was allowed, whoever comes first."""

from __future__ import annotations

import threading

import pytest

from nova_lite import exception
from nova_lite.db import migration, quotas
from nova_lite.db.session import Database
from tests.integration.conftest import OpenDatabase

THREADS = 12


@pytest.fixture
def database(open_database: OpenDatabase) -> Database:
    database = open_database()
    migration.sync(database)
    return database


def test_new_project_is_charged_right_by_many_at_once(database: Database) -> None:
    """Nobody has a row yet: all try to make it."""
    conf, taken, start = database._conf, [], threading.Barrier(THREADS)

    def take() -> None:
        start.wait()
        try:
            database.write(lambda conn: quotas.reserve(conn, conf, "new", 1, 3, 100))
        except exception.QuotaExceeded:
            return
        taken.append(1)

    threads = [threading.Thread(target=take) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # 20 cores are enough for six times three.
    assert len(taken) == 6
    assert database.read(lambda conn: quotas.usage(conn, "new")) == quotas.Usage(6, 18, 600)


def test_refusal_names_every_resource_and_takes_nothing(database: Database) -> None:
    conf = database._conf

    with pytest.raises(exception.QuotaExceeded, match="instances, cores: Requested 11, 21"):
        database.write(lambda conn: quotas.reserve(conn, conf, "p", 11, 21, 1))

    assert database.read(lambda conn: quotas.usage(conn, "p")) == quotas.Usage()


def test_release_does_not_go_below_zero(database: Database) -> None:
    conf = database._conf
    database.write(lambda conn: quotas.reserve(conn, conf, "p", 2, 2, 2))

    database.write(lambda conn: quotas.release(conn, "p", 1, 1, 1))
    assert database.read(lambda conn: quotas.usage(conn, "p")) == quotas.Usage(1, 1, 1)
    database.write(lambda conn: quotas.release(conn, "p", 5, 5, 5))
    assert database.read(lambda conn: quotas.usage(conn, "p")) == quotas.Usage()


def test_unlimited(database: Database) -> None:
    conf = database._conf
    database.write(lambda conn: quotas.set_limits(conn, "p", {"instances": -1, "cores": -1, "ram": -1}))

    database.write(lambda conn: quotas.reserve(conn, conf, "p", 1000, 100000, 10**9))

    assert database.read(lambda conn: quotas.limits(conn, conf, "p"))["instances"] == -1

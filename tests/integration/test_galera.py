# SPDX-License-Identifier: Apache-2.0
"""A real Galera cluster is refused, and why is said, until the operator says that only one node is written to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova_lite import exception
from nova_lite.db import migration
from tests.fixtures.books import disagreements
from tests.fixtures.cloud import Cloud
from tests.fixtures.galera import GaleraNode
from tests.integration.conftest import open_at

SINGLE_WRITER = {"database": {"galera_single_writer": "true"}}


@pytest.fixture(scope="module")
def cloud(galera: GaleraNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud that nothing of is running yet, configured as the single writer of a node."""
    cloud = Cloud(tmp_path_factory.mktemp("cloud"), galera.url(galera.create_database()), "fake://", SINGLE_WRITER)
    try:
        yield cloud
    finally:
        cloud.stop()


@pytest.mark.parametrize("program", ["api", "conductor", "scheduler", "all-in-one", "manage db sync", "manage audit"])
def test_every_process_refuses_a_cluster_and_says_what_to_do(cloud: Cloud, program: str) -> None:
    config = cloud.configure("many-writers", {"database": {"galera_single_writer": "false"}})
    name, *arguments = program.split()
    command = [str(Path(sys.executable).parent / f"nova-lite-{name}"), *arguments, "--config-file", str(config)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1, done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert "error: The database cannot be reached: this is a node of a Galera cluster" in line
    assert "does not share between nodes" in line
    assert "[database]galera_single_writer" in line


def test_a_cluster_starts_as_single_writer(cloud: Cloud) -> None:
    cloud.start("all-in-one")
    cloud.wait_until_up()
    client = cloud.client()
    servers = client.boot_at_once(4, client.flavor(), client.group("anti-affinity"))

    statuses = sorted(server["status"] for server in client.settle(servers))

    assert statuses == ["ACTIVE", "ACTIVE", "ACTIVE", "ERROR"]
    assert not disagreements(cloud.database)


def test_a_node_that_does_not_replicate_is_none(galera: GaleraNode) -> None:
    database = open_at(galera.url(galera.create_database()))
    with pytest.raises(exception.DatabaseUnavailable, match="Galera"):
        migration.sync(database)
    with galera.root() as cursor:
        cursor.execute("SET GLOBAL wsrep_on = OFF")
        try:
            migration.sync(database)
        finally:
            cursor.execute("SET GLOBAL wsrep_on = ON")
    database.close()

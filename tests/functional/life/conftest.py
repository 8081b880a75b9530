# SPDX-License-Identifier: Apache-2.0
"""The embedded cloud in the test's own process, with the parts of it within reach."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures.books import disagreements
from tests.fixtures.client import Client, wait_until_empty
from tests.fixtures.inside import InsideCloud


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InsideCloud]:
    cloud = InsideCloud(tmp_path_factory.mktemp("inside"))
    yield cloud
    cloud.stop()


@pytest.fixture
def client(inside: InsideCloud) -> Iterator[Client]:
    """The administrator; whatever a test does, the books agree afterwards."""
    client = inside.client()
    yield client
    wait_until_empty(lambda: disagreements(inside.database), 10)


@pytest.fixture
def server(client: Client) -> Iterator[str]:
    """A server that is ACTIVE."""
    server = client.boot("alive", client.flavor())
    assert client.settle([server])[0]["status"] == "ACTIVE"
    yield server
    if client.servers([server]):
        client.delete([server])

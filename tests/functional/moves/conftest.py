# SPDX-License-Identifier: Apache-2.0
"""A cloud of three hosts in this process, whose hypervisor fails when it is told to; each test leaves it empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures import movers as fixture
from tests.fixtures.inside import InsideCloud

SETTINGS = {
    "fake": {"hosts": "host[1-3]", "live_migration_seconds": "0.3"},
    "conductor": {
        "allow_resize_to_same_host": "true",
        "disable_after_build_failures": "0",
        "drain_interval": "0.2",
    },
    "compute": {"cpu_allocation_ratio": "1", "inventory_interval": "0.2"},
}


class Movers(fixture.Movers):
    """What tests of moves keep asking, with the cloud's own parts within reach."""

    def __init__(self, cloud: InsideCloud) -> None:
        super().__init__(cloud)
        self.cloud = cloud


@pytest.fixture(scope="module")
def moving_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InsideCloud]:
    made = InsideCloud(tmp_path_factory.mktemp("moves"), SETTINGS)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def movers(moving_cloud: InsideCloud) -> Iterator[Movers]:
    made = Movers(moving_cloud)
    yield made
    made.clear()

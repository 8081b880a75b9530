# SPDX-License-Identifier: Apache-2.0
"""Three schedulers in the embedded cloud race for hosts through the API, and never lose a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures import races
from tests.fixtures.cloud import Cloud


@pytest.fixture(scope="module")
def three_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    cloud = Cloud.embedded(tmp_path_factory.mktemp("three-hosts"))
    yield cloud
    cloud.stop()


@pytest.fixture(scope="module")
def ten_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    cloud = Cloud.embedded(tmp_path_factory.mktemp("ten-hosts"), {"fake": {"hosts": "host[1-10]"}})
    yield cloud
    cloud.stop()


@pytest.mark.long
def test_four_boots_on_three_hosts_100_times(three_hosts: Cloud) -> None:
    races.anti_affinity_rounds(three_hosts, rounds=100, count=4, places=3)


def test_ten_boots_fill_ten_hosts(ten_hosts: Cloud) -> None:
    races.anti_affinity_rounds(ten_hosts, rounds=5, count=10, places=10)


def test_an_affinity_group_lands_on_one_host(ten_hosts: Cloud) -> None:
    races.affinity_rounds(ten_hosts, rounds=5, count=4)


def test_forty_boots_into_forty_slots(ten_hosts: Cloud) -> None:
    races.fill(ten_hosts, count=40, each=4)

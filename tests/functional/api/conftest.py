# SPDX-License-Identifier: Apache-2.0
"""The whole api on a database of its own, with users of two projects and a bus that nobody listens on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nova_lite import conf, policy, rpc
from tests.fixtures.furnished_api import FurnishedAPI
from tests.fixtures.whole_api import WholeAPI, write_users


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the users file; made once, since bcrypt is slow."""
    directory = tmp_path_factory.mktemp("people")
    write_users(directory)
    return directory


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The in-memory bus, without consumers: casts go nowhere.

    A process has one bus. It is given back after each file, since the next may hold a cloud that brings its own.
    """
    file = tmp_path_factory.mktemp("bus") / "bus.conf"
    file.write_text("[DEFAULT]\ntransport_url = fake://\n")
    # The global ones, as in a process of its own: oslo.messaging has options that it registers nowhere else.
    options = conf.CONF
    conf.register(options)
    options([], default_config_files=[str(file)], default_config_dirs=[])
    rpc.start(options)
    yield
    rpc.stop()
    options.reset()


@pytest.fixture
def api(people: Path, bus: None, tmp_path: Path) -> Iterator[WholeAPI]:
    made = WholeAPI(people, tmp_path)
    yield made
    made.close()
    policy.reset()


@pytest.fixture(scope="module")
def furnished(bus: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FurnishedAPI]:
    """An api with one of everything."""
    made = FurnishedAPI(tmp_path_factory.mktemp("furnished"))
    yield made
    made.close()
    policy.reset()

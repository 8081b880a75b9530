# SPDX-License-Identifier: Apache-2.0
"""The real api for the tests of the servers noun."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.server_api import ServerAPI, write_users


@pytest.fixture(scope="session")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The users file of every api of the run."""
    directory = tmp_path_factory.mktemp("users")
    write_users(directory)
    return directory


@pytest.fixture
def make_api(users: Path, tmp_path: Path) -> Iterator[Callable[..., ServerAPI]]:
    """Make the api with options of its own, as group__option."""
    made: list[ServerAPI] = []

    def make(**overrides: Any) -> ServerAPI:
        made.append(ServerAPI(users, tmp_path, **overrides))
        return made[-1]

    yield make
    for api in made:
        api.close()


@pytest.fixture
def api(make_api: Callable[..., ServerAPI]) -> ServerAPI:
    return make_api()

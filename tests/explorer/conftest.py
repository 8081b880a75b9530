# SPDX-License-Identifier: Apache-2.0
"""The marker of the cases that are small enough for every day, and what all searches share."""

from __future__ import annotations

import pytest

from tests.explorer.world import Lab


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "daily: explorer cases that take seconds; the others take minutes together")


@pytest.fixture(scope="session")
def lab() -> Lab:
    return Lab()

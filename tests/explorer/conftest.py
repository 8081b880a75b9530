# SPDX-License-Identifier: Apache-2.0
"""What all searches share."""

from __future__ import annotations

import pytest

from tests.explorer.world import Lab


@pytest.fixture(scope="session")
def lab() -> Lab:
    return Lab()

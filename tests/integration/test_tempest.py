# SPDX-License-Identifier: Apache-2.0
"""Two rungs of stock Tempest: images made of servers, and where servers are placed. tools/tempest runs all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures import programs
from tests.tempest import stock

# Tempest's own installation, Keystone and Glance come before the tests.
pytestmark = [pytest.mark.timeout(2400), pytest.mark.long]

TOOL = Path(__file__).parents[2] / "tools" / "tempest"


@pytest.fixture(scope="module")
def tempest(openstack_home: Path) -> Path:
    """The virtual environment of Tempest."""
    try:
        return stock.environment()
    except programs.ProgramMissingError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("rung", ["4-snapshots", "5-scheduling"])
def test_every_test_of_a_rung_passes(tempest: Path, tmp_path: Path, rung: str) -> None:
    command = [sys.executable, str(TOOL), "--rung", rung, "--directory", str(tmp_path / "tempest")]

    done = subprocess.run(command, capture_output=True, text=True, timeout=2000, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{rung:<16}" in done.stdout

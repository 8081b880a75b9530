# SPDX-License-Identifier: Apache-2.0
"""The systemd units, read by systemd itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from nova_lite.conf.service import OPTIONS
from tests.fixtures.production import ETC

UNITS = sorted((ETC / "systemd").glob("*.service"))
_NEEDED = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing: apt-get install systemd"
)


@pytest.fixture
def installed(tmp_path: Path) -> list[str]:
    """The units with the programs of this virtual environment in the place of those of /usr/bin."""
    for unit in UNITS:
        (tmp_path / unit.name).write_text(re.sub(r"(ExecStart=)/usr/bin/", rf"\1{sys.prefix}/bin/", unit.read_text()))
    return [str(tmp_path / unit.name) for unit in UNITS]


@_NEEDED
def test_systemd_accepts_the_units(installed: list[str]) -> None:
    done = subprocess.run(["systemd-analyze", "verify", *installed], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "nova-lite" in line]) == (0, [])


@_NEEDED
def test_systemd_finds_little_that_a_service_could_do_to_its_machine(installed: list[str]) -> None:
    command = ["systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=20", *installed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_service_that_runs_alone_has_a_unit() -> None:
    services = {
        point.name
        for point in entry_points(group="console_scripts")
        if point.value.startswith("nova_lite.cmd.") and point.name.split("-")[-1] not in ("manage", "one", "events")
    }
    assert services <= {unit.stem for unit in UNITS}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_service_has_the_time_that_it_takes_to_stop(unit: Path) -> None:
    (graceful,) = (option.default for option in OPTIONS if option.dest == "graceful_shutdown_timeout")
    (patience,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit.read_text(), re.MULTILINE)
    assert graceful < int(patience) < graceful + 60


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_service_gets_its_own_logins_and_shows_them_to_nobody(unit: Path) -> None:
    service = unit.stem.removeprefix("nova-lite-").removesuffix("-wsgi")
    assert f"\nLoadCredential=secrets.conf:/etc/nova-lite/secrets/{service}.conf\n" in unit.read_text()
    assert "PASSWORD" not in unit.read_text().upper()

# SPDX-License-Identifier: Apache-2.0
"""The disks of the fake hypervisor are disks to everybody else."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from nova_lite.image.inspection import inspect
from nova_lite.virt import fake_disk


@pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")
@pytest.mark.parametrize("size", [512, 1 << 30, (40 << 30) + 512, 40 << 40])
def test_qemu_finds_nothing_wrong(tmp_path: Path, size: int) -> None:
    path = tmp_path / "disk"

    fake_disk.write(path, size)

    done = subprocess.run(["qemu-img", "check", "--output=json", "-f", "qcow2", path], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["check-errors"] == 0
    assert inspect(path, "qcow2").virtual_size == size

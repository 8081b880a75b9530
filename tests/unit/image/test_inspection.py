# SPDX-License-Identifier: Apache-2.0
"""What is accepted as an image and what is not, tried with real images, among them those that an attacker makes."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from nova_lite import exception
from nova_lite.image import qemu_img
from nova_lite.image.inspection import ImageFacts, inspect

pytestmark = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is missing: install qemu-utils")

MIB = 1 << 20


def create(path: Path, *options: str, size: int | None = MIB) -> Path:
    """Make an image with qemu-img."""
    subprocess.run(
        ["qemu-img", "create", "-q", *options, path, *([str(size)] if size is not None else [])], check=True, timeout=60
    )
    return path


def test_flat_qcow2_is_accepted_with_its_virtual_size(tmp_path: Path) -> None:
    path = create(tmp_path / "image", "-f", "qcow2", size=5 * MIB)

    assert inspect(path, "qcow2") == inspect(path) == ImageFacts("qcow2", 5 * MIB)


def test_raw_is_accepted_with_its_size_in_whole_sectors(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(os.urandom(MIB + 1))

    assert inspect(path, "raw") == inspect(path) == ImageFacts("raw", MIB + 512)


def test_raw_with_a_partition_table_is_raw(tmp_path: Path) -> None:
    path = tmp_path / "image"
    sector = bytearray(512)
    sector[446:462] = struct.pack("<B3sB3sII", 0x80, b"\0\2\0", 0x83, b"\0\0\0", 2048, 2048)
    sector[510:] = b"\x55\xaa"
    path.write_bytes(bytes(sector).ljust(2 * MIB, b"\0"))

    assert inspect(path, "raw").format == "raw"


def test_a_changed_file_is_looked_at_again(tmp_path: Path) -> None:
    path = create(tmp_path / "image", "-f", "qcow2")
    inspect(path, "qcow2")
    path.write_bytes(b"no image any more")

    with pytest.raises(exception.ImageUnacceptable):
        inspect(path, "qcow2")


def test_backing_file_is_refused(tmp_path: Path) -> None:
    path = create(tmp_path / "image", "-f", "qcow2", "-b", "/etc/passwd", "-F", "raw", size=None)

    with pytest.raises(exception.ImageUnacceptable, match="backing file"):
        inspect(path, "qcow2")


def test_external_data_file_is_refused(tmp_path: Path) -> None:
    path = create(tmp_path / "image", "-f", "qcow2", "-o", f"data_file={tmp_path}/elsewhere,data_file_raw=on")

    with pytest.raises(exception.ImageUnacceptable, match="data_file"):
        inspect(path, "qcow2")


@pytest.mark.parametrize("disk_format", ["vmdk", "vdi", "vhdx"])
def test_other_formats_are_refused_whatever_they_claim(tmp_path: Path, disk_format: str) -> None:
    path = create(tmp_path / "image", "-f", disk_format, size=16 * MIB)

    for claim in (None, "qcow2", "raw", disk_format):
        with pytest.raises(exception.ImageUnacceptable, match="qcow2"):
            inspect(path, claim)


def test_qcow2_that_claims_to_be_raw_is_refused(tmp_path: Path) -> None:
    path = create(tmp_path / "image", "-f", "qcow2")

    with pytest.raises(exception.ImageUnacceptable, match="claims to be raw, but its content is qcow2"):
        inspect(path, "raw")


def test_garbage_that_claims_to_be_qcow2_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(os.urandom(MIB))

    with pytest.raises(exception.ImageUnacceptable, match="claims to be qcow2, but its content is raw"):
        inspect(path, "qcow2")


def test_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "image").touch()

    with pytest.raises(exception.ImageUnacceptable, match="empty"):
        inspect(tmp_path / "image", "qcow2")


def test_broken_header_is_refused_without_naming_the_hosts_paths(tmp_path: Path) -> None:
    path = create(tmp_path / "image", "-f", "qcow2")
    with path.open("r+b") as file:
        file.seek(36)  # the number of entries of the first table
        file.write(struct.pack(">I", 0x7FFFFFFF))

    with pytest.raises(exception.ImageUnacceptable, match="qemu-img cannot read it") as failure:
        inspect(path, "qcow2", "my-image")

    assert "my-image" in str(failure.value)
    assert str(tmp_path) not in str(failure.value)


def test_qemu_img_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(qemu_img.QemuImgError, match=r"longer than 0\.2 s"):
        qemu_img.run(["info", "-f", "raw", pipe], timeout=0.2)


def test_qemu_img_runs_within_its_limits() -> None:
    shown = subprocess.run(
        [*qemu_img.LIMITED, "sh", "-c", "ulimit -v; ulimit -t; ulimit -c"], check=True, capture_output=True, text=True
    ).stdout

    assert shown.split() == [str(qemu_img.ADDRESS_SPACE >> 10), str(qemu_img.CPU_SECONDS), "0"]

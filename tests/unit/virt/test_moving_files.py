# SPDX-License-Identifier: Apache-2.0
"""Whose files are in a directory, and how old disks come back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nova_lite import exception
from nova_lite.objects.flavor import Flavor
from nova_lite.virt.libvirt.moving_files import MovingFiles, check_nothing_shrinks
from nova_lite.virt.libvirt.transfer import _FileContent

UUID = "6f2f5d6c-0000-4000-8000-00000000000a"
FLAVOR = Flavor("1", "small", vcpus=1, memory_mb=16, root_gb=1)


def files_of(tmp_path: Path, host: str) -> MovingFiles:
    return MovingFiles(tmp_path, UUID, host)


@pytest.fixture
def here(tmp_path: Path) -> MovingFiles:
    """Files of an instance that lives here."""
    files = files_of(tmp_path, "here")
    files.prepare()
    (files.directory / "disk").write_bytes(b"old")
    return files


def test_files_of_another_host_are_shared_and_left(here: MovingFiles, tmp_path: Path) -> None:
    there = files_of(tmp_path, "there")
    assert there.is_shared() and not here.is_shared()

    there.remove()

    assert (here.directory / "disk").read_bytes() == b"old"
    here.hand_over("there")
    assert here.is_shared() and not there.is_shared()

    there.remove()

    assert not here.directory.exists()


def test_disks_without_an_owner_are_nobody_s_to_use(here: MovingFiles, tmp_path: Path) -> None:
    (here.directory / "owner").unlink()

    with pytest.raises(exception.BuildFailed, match="whose they are"):
        files_of(tmp_path, "there").is_shared()


def test_kept_disks_come_back_however_often_it_is_begun(here: MovingFiles) -> None:
    here.keep("move", "<domain/>")
    (here.directory / "disk").write_bytes(b"new")
    (here.directory / "disk.eph0").write_bytes(b"new")
    here.keep("move", "<domain/>")  # done before

    for _ in range(2):
        here.bring_back(FLAVOR)

    assert (here.directory / "disk").read_bytes() == b"old"
    assert not (here.directory / "disk.eph0").exists()
    assert here.kept_definition("move") == "<domain/>"
    here.forget_kept()
    assert here.kept_definition("move") is None


def test_disks_kept_for_an_earlier_move_are_not_those_of_this_one(here: MovingFiles) -> None:
    here.keep("earlier", "<domain/>")
    (here.directory / "disk").write_bytes(b"newer")
    assert here.kept_definition("move") is None

    here.keep("move", "<domain/>")

    assert (here.kept_directory / "disk").read_bytes() == b"newer"


def test_marks_go_with_the_instance(here: MovingFiles) -> None:
    here.mark("one")
    name = here.mark("two")
    assert [path.name for path in here.directory.parent.glob(".moving*")] == [name]

    here.remove()

    assert list(here.directory.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("sizes", "wanted", "shrinks"),
    [
        ({"disk": 2}, {"disk": 2}, ""),
        ({"disk": 2}, {"disk": 0}, ""),
        ({"disk": 2}, {"disk": 1}, "root"),
        ({"disk": 1, "disk.eph0": 1}, {"disk": 1, "disk.eph0": 0}, "ephemeral"),
    ],
)
def test_disks_do_not_shrink(sizes: dict[str, int], wanted: dict[str, int], shrinks: str) -> None:
    if not shrinks:
        check_nothing_shrinks(sizes, wanted)
        return
    with pytest.raises(exception.MigrationFailed, match=shrinks):
        check_nothing_shrinks(sizes, wanted)


def test_holes_are_found(tmp_path: Path) -> None:
    path, block = tmp_path / "sparse", 1 << 20
    with path.open("wb") as file:
        file.write(b"x" * block)
        file.seek(3 * block)
        file.write(b"y" * block)
        file.truncate(6 * block)
    seen = []
    descriptor = os.open(path, os.O_RDONLY)
    try:
        content = _FileContent(descriptor)
        while (section := content.section())[1]:
            seen.append(section)
            content.skip(section[1])
        assert content.read(1) == b""
    finally:
        os.close(descriptor)

    # A file system without holes says that all of it is data.
    assert seen in ([(True, block), (False, 2 * block), (True, block), (False, 2 * block)], [(True, 6 * block)])

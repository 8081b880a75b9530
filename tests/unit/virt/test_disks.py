# SPDX-License-Identifier: Apache-2.0
"""The files of an instance on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova_lite.virt.libvirt.disks import InstanceFiles
from nova_lite.virt.libvirt.reasons import without_paths

UUID = "6f2f5d6c-0000-4000-8000-00000000000a"


@pytest.mark.parametrize("name", ["..", "../../etc", "", "not-a-uuid"])
def test_only_a_uuid_becomes_a_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="UUID"):
        InstanceFiles(tmp_path, name, "here")


def test_console_shows_its_end_across_a_rotation(tmp_path: Path) -> None:
    files = InstanceFiles(tmp_path, UUID, "here")
    files.directory.mkdir()
    files.console_log.with_name("console.log.0").write_bytes(b"one\ntwo\n")
    files.console_log.write_bytes(b"three\nfo\xffur\n")

    assert files.read_console(None, 1000) == "one\ntwo\nthree\nfo\ufffdur\n"
    assert files.read_console(2, 1000) == "three\nfo\ufffdur"
    assert files.read_console(0, 1000) == ""
    assert files.read_console(None, 16) == "two\nthree\nfo\ufffdur\n"
    assert files.read_console(None, 4) == "\ufffdur\n"


def test_reasons_for_users_name_files_but_not_where_they_are() -> None:
    reason = "Could not open '/var/lib/nova-lite/image-cache/abc': No such file (see /a/b.log), 1/2 done"

    assert without_paths(reason) == "Could not open 'abc': No such file (see b.log), 1/2 done"

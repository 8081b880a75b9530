# SPDX-License-Identifier: Apache-2.0
"""Which of a domain's disks a backup is of."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("libvirt")

from nova_lite import exception
from nova_lite.virt.libvirt.snapshot import backup_xml

DOMAIN = """
<domain><devices>
  <disk type='file' device='disk'><source file='/i/disk'/><target dev='vda'/></disk>
  <disk type='file' device='disk'><source file='/i/disk.eph0'/><target dev='vdb'/></disk>
  <disk type='file' device='cdrom'><target dev='hda'/></disk>
</devices></domain>
"""


def test_the_root_disk_alone_is_copied() -> None:
    backup = ElementTree.fromstring(backup_xml(DOMAIN, Path("/i/disk"), Path("/copies/a & b")))

    disks = {disk.get("name"): disk for disk in backup.iterfind("disks/disk")}
    assert {name: disk.get("backup") for name, disk in disks.items()} == {"vda": "yes", "vdb": "no", "hda": "no"}
    target = disks["vda"].find("target")
    assert target is not None and target.get("file") == "/copies/a & b"


def test_a_server_without_a_root_disk_has_no_image() -> None:
    with pytest.raises(exception.SnapshotFailed, match="no root disk"):
        backup_xml(DOMAIN, Path("/i/other"), Path("/copy"))

# SPDX-License-Identifier: Apache-2.0
"""The config drive: its content in OpenStack's format, and its image read back by another program."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nova_lite import exception
from nova_lite.compute.metadata import MetadataDrive
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.instance import Instance
from nova_lite.virt.libvirt import config_drive


def instance(**changes: Any) -> Instance:
    values: dict[str, Any] = {
        "uuid": "6f2f5d6c-0000-4000-8000-00000000000a",
        "name": "web 1",
        "hostname": "web-1",
        "project_id": "project",
        "user_id": "user",
        "flavor": Flavor("1", "small", 1, 64, 1),
        "node": "h",
        "host": "h",
        "availability_zone": "nova",
        "launch_index": 3,
        "metadata": {"role": "web"},
    }
    return Instance(**{**values, **changes})


def test_meta_data_says_who_the_guest_is() -> None:
    meta = json.loads(MetadataDrive(instance()).files()["openstack/latest/meta_data.json"])

    assert len(base64.b64decode(meta.pop("random_seed"))) == 512
    assert meta == {
        "uuid": "6f2f5d6c-0000-4000-8000-00000000000a",
        "name": "web 1",
        "hostname": "web-1",
        "project_id": "project",
        "availability_zone": "nova",
        "launch_index": 3,
        "meta": {"role": "web"},
        "devices": [],
    }


def test_key_pair_is_there_in_both_forms() -> None:
    meta = MetadataDrive(instance(key_name="mine", key_data="ssh-ed25519 AAAA")).meta_data()

    assert meta["public_keys"] == {"mine": "ssh-ed25519 AAAA"}
    assert meta["keys"] == [{"name": "mine", "type": "ssh", "data": "ssh-ed25519 AAAA"}]


def test_versions_hold_the_same() -> None:
    files = MetadataDrive(instance(user_data=base64.b64encode(b"#cloud-config\n").decode())).files()

    names = {"meta_data.json", "network_data.json", "user_data", "vendor_data.json", "vendor_data2.json"}
    assert set(files) == {f"openstack/{version}/{name}" for version in ("latest", "2018-08-27") for name in names}
    assert files["openstack/latest/user_data"] == b"#cloud-config\n"
    assert files["openstack/latest/meta_data.json"] == files["openstack/2018-08-27/meta_data.json"]


def test_files_that_the_user_injects_are_there_once_with_their_paths() -> None:
    contents = [(path, base64.b64encode(data).decode()) for path, data in (("/etc/motd", b"hello"), ("b", b""))]
    drive = MetadataDrive(instance(injected_files=tuple(contents)))

    assert drive.meta_data()["files"] == [
        {"content_path": "/content/0000", "path": "/etc/motd"},
        {"content_path": "/content/0001", "path": "b"},
    ]
    files = drive.files()
    assert (files["openstack/content/0000"], files["openstack/content/0001"]) == (b"hello", b"")


def test_user_data_that_are_not_base64_fail_the_build() -> None:
    with pytest.raises(exception.BuildFailed, match="base64"):
        MetadataDrive(instance(user_data="!!!")).files()


@pytest.mark.skipif(shutil.which("xorriso") is None, reason="xorriso is missing: install xorriso")
def test_image_reads_back_with_its_label_and_names(tmp_path: Path) -> None:
    files = {
        "openstack/latest/meta_data.json": b"{}",
        "openstack/2018-08-27/meta_data.json": b"{}",
        "openstack/latest/user_data": bytes(range(256)) * 100,
        "openstack/content/0000": b"",
        "ec2/a-name-that-is-too-long-for-old-iso9660.json": b"x" * 2048,
    }
    image, out = tmp_path / "disk.config", tmp_path / "out"

    config_drive.write(files, image)

    command = ["xorriso", "-osirrox", "on", "-indev", str(image), "-extract", "/", str(out)]
    log = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stderr
    assert "config-2" in log
    assert {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()} == files
    assert image.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob("*.partial")) == []

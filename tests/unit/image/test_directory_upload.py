# SPDX-License-Identifier: Apache-2.0
"""Content on its way into the directory of images: whole under its name, or not there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from oslo_config import cfg

from nova_lite import conf as nova_conf
from nova_lite import exception
from nova_lite.image.directory import DirectoryImages
from nova_lite.objects.image import Content, Image
from nova_lite.virt import fake_disk

IMAGE = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def images(tmp_path: Path) -> DirectoryImages:
    conf = cfg.ConfigOpts()
    nova_conf.register(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("path", str(tmp_path / "images"), group="image")
    return DirectoryImages(conf)


def test_what_was_uploaded_can_be_fetched(images: DirectoryImages, tmp_path: Path) -> None:
    source, fetched = tmp_path / "source", tmp_path / "fetched"
    fake_disk.write(source, 3 << 30)
    data = source.read_bytes()

    content = images.upload(IMAGE, source)

    sums = hashlib.md5(data, usedforsecurity=False).hexdigest(), hashlib.sha512(data).hexdigest()
    assert content == Content(len(data), *sums, 3 << 30)
    images.fetch(Image(IMAGE), fetched)
    assert fetched.read_bytes() == data
    assert images.upload(IMAGE, source) == content, "once more is no error"
    assert [path.name for path in (tmp_path / "images").iterdir()] == [IMAGE]
    images.delete(IMAGE)
    images.delete(IMAGE)
    assert list((tmp_path / "images").iterdir()) == []


def test_a_directory_that_cannot_be_written_says_so(images: DirectoryImages, tmp_path: Path) -> None:
    (tmp_path / "images").write_text("not a directory")
    (tmp_path / "source").write_bytes(b"x")

    with pytest.raises(exception.SnapshotFailed, match="could not be stored in the directory of images"):
        images.upload(IMAGE, tmp_path / "source")

# SPDX-License-Identifier: Apache-2.0
"""The image cache: one fetch per image, whole files only, and nothing kept of what is refused."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from oslo_config import cfg

from nova_lite import conf as nova_conf
from nova_lite import exception
from nova_lite.image.cache import ImageCache
from nova_lite.image.directory import DirectoryImages
from nova_lite.objects.image import Image

pytestmark = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is missing: install qemu-utils")

FETCH_IN_A_PROCESS = """
import sys
from nova_lite import conf
from nova_lite.image.cache import ImageCache
from nova_lite.image.directory import DirectoryImages
from nova_lite.objects.image import Image

class Telling(DirectoryImages):
    def fetch(self, image, destination):
        print("fetched")
        super().fetch(image, destination)

conf.register()
conf.CONF([], default_config_files=[])
conf.CONF.set_override("state_path", sys.argv[1])
ImageCache(conf.CONF, Telling(conf.CONF)).get(Image(id=sys.argv[2], disk_format="qcow2"), 1)
"""


class CountingImages(DirectoryImages):
    """The directory, with a count of how often it was asked."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self.fetched = 0
        self._lock = threading.Lock()

    def fetch(self, image: Image, destination: Path) -> None:
        with self._lock:
            self.fetched += 1
        super().fetch(image, destination)


@pytest.fixture
def conf(tmp_path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    nova_conf.register(conf)
    conf([], project="nova-lite", default_config_files=[])
    conf.set_override("state_path", str(tmp_path))
    (tmp_path / "images").mkdir()
    return conf


@pytest.fixture
def source(conf: cfg.ConfigOpts) -> CountingImages:
    return CountingImages(conf)


@pytest.fixture
def cache(conf: cfg.ConfigOpts, source: CountingImages) -> ImageCache:
    return ImageCache(conf, source)


def upload(directory: Path, size: str = "1M") -> Image:
    """Put a qcow2 image into the directory of images."""
    image = Image(id=str(uuid.uuid4()), disk_format="qcow2", container_format="bare")
    path = directory / "images" / image.id
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", path, size], check=True, timeout=60)
    return image


def cached(directory: Path) -> list[str]:
    """Return the names in the cache, but for locks."""
    return [path.name for path in (directory / "image-cache").iterdir() if path.suffix != ".lock"]


def test_image_is_fetched_once_and_kept_whole(cache: ImageCache, source: CountingImages, tmp_path: Path) -> None:
    image = upload(tmp_path)

    with ThreadPoolExecutor(8) as threads:
        paths = list(threads.map(lambda _: cache.get(image, 1), range(16)))

    assert source.fetched == 1
    assert set(paths) == {tmp_path / "image-cache" / image.id}
    assert paths[0].read_bytes() == (tmp_path / "images" / image.id).read_bytes()
    assert cached(tmp_path) == [image.id]


def test_processes_share_one_fetch(cache: ImageCache, tmp_path: Path) -> None:
    image = upload(tmp_path)
    command = [sys.executable, "-c", FETCH_IN_A_PROCESS, str(tmp_path), image.id]

    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in running]

    assert [process.returncode for process in running] == [0, 0]
    assert "".join(outputs).count("fetched") == 1


def test_image_larger_than_the_flavor_is_refused(cache: ImageCache, tmp_path: Path) -> None:
    image = upload(tmp_path, size="1025M")

    with pytest.raises(exception.ImageUnacceptable, match="2 GiB, and the flavor's root disk 1"):
        cache.get(image, 1)
    assert cache.get(image, 2) == cache.get(image, 0)


def test_refused_image_leaves_nothing_and_can_come_again(cache: ImageCache, tmp_path: Path) -> None:
    image = upload(tmp_path)
    good = (tmp_path / "images" / image.id).read_bytes()
    (tmp_path / "images" / image.id).write_bytes(b"not an image")

    with pytest.raises(exception.ImageUnacceptable):
        cache.get(image, 1)
    assert cached(tmp_path) == []

    (tmp_path / "images" / image.id).write_bytes(good)
    assert cache.get(image, 1).read_bytes() == good


@pytest.mark.parametrize(
    "wrong", [{"size": 17}, {"checksum": hashlib.md5(b"another", usedforsecurity=False).hexdigest()}]
)
def test_damaged_image_is_not_kept(cache: ImageCache, tmp_path: Path, wrong: dict[str, object]) -> None:
    image = upload(tmp_path)
    claimed = Image(id=image.id, disk_format="qcow2", **wrong)  # type: ignore[arg-type]

    with pytest.raises(exception.BuildFailed, match="arrived"):
        cache.get(claimed, 1)
    assert cached(tmp_path) == []


def test_right_checksum_and_size_are_accepted(cache: ImageCache, tmp_path: Path) -> None:
    image = upload(tmp_path)
    content = (tmp_path / "images" / image.id).read_bytes()
    checksum = hashlib.md5(content, usedforsecurity=False).hexdigest()

    cache.get(Image(id=image.id, disk_format="qcow2", size=len(content), checksum=checksum), 1)


def test_missing_image_is_unacceptable(cache: ImageCache) -> None:
    with pytest.raises(exception.ImageUnacceptable, match="not in the directory"):
        cache.get(Image(id=str(uuid.uuid4()), disk_format="qcow2"), 1)


@pytest.mark.parametrize("image_id", ["../../etc/passwd", "..", "", ".hidden", "a/b", "a\0b"])
def test_id_that_is_a_path_finds_no_image(cache: ImageCache, image_id: str) -> None:
    with pytest.raises(exception.ImageNotFound):
        cache.get(Image(id=image_id, disk_format="qcow2"), 1)

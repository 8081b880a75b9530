# SPDX-License-Identifier: Apache-2.0
"""The base images of a compute host: each is fetched once, checked, and from then on shared by all instances of it.

Many builds of one image come at the same time, also from several processes on one host. The first takes the image's
lock, a file lock, which the kernel drops if the process dies; the others wait for it and find the file. A file under
its final name is whole: it is fetched and checked under another name first.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oslo_config import cfg

from nova_lite import exception
from nova_lite.image.driver import ImageSource, checked_id
from nova_lite.image.inspection import ImageFacts, inspect
from nova_lite.objects.image import Image

LOG = logging.getLogger(__name__)

GIB = 1 << 30


class ImageCache:
    """The directory [compute] image_cache_path, filled from a source."""

    def __init__(self, conf: cfg.ConfigOpts, source: ImageSource) -> None:
        self._directory = Path(conf.compute.image_cache_path)
        self._max_bytes = conf.image.max_size_mb << 20
        self._source = source

    def get(self, image: Image, root_gb: int) -> Path:
        """Return the image's file, fetched if need be, fit for a root disk of root_gb GiB (0: as big as the image).

        :raises ImageUnacceptable: it must not be used, or is larger than the flavor's disk.
        :raises BuildFailed: it could not be had this time.
        """
        path = self._directory / checked_id(image.id)
        if not path.exists():
            self._fetch_once(image, path)
        facts = inspect(path, image.disk_format, image.id)
        _check_fits(image, facts, root_gb)
        return path

    def _fetch_once(self, image: Image, path: Path) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with _locked(self._directory / f".{image.id}.lock"):
                if not path.exists():
                    self._fetch(image, path)
        except OSError as error:
            raise exception.BuildFailed(
                reason=f"image {image.id} could not be stored on the host ({error.strerror})."
            ) from error

    def _fetch(self, image: Image, path: Path) -> None:
        began = time.monotonic()
        partial = path.with_name(f".{path.name}.partial")
        try:
            self._source.fetch(image, partial)
            self._check_content(image, partial)
            inspect(partial, image.disk_format, image.id)
            partial.chmod(0o644)
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
        LOG.info("Image cached image=%s bytes=%d seconds=%.1f", image.id, path.stat().st_size, time.monotonic() - began)

    def _check_content(self, image: Image, path: Path) -> None:
        """Compare size and checksum with what the image says; both are optional there."""
        size = path.stat().st_size
        if size > self._max_bytes:
            reason = f"it has {size >> 20} MiB, and at most {self._max_bytes >> 20} are allowed."
            raise exception.ImageUnacceptable(image=image.id, reason=reason)
        if image.size is not None and size != image.size:
            raise exception.BuildFailed(
                reason=f"image {image.id} arrived with {size} of its {image.size} bytes. Try again, or upload it anew."
            )
        if image.checksum and _md5(path) != image.checksum:
            raise exception.BuildFailed(
                reason=f"image {image.id} arrived damaged: its checksum differs. Try again, or upload it anew."
            )


def _check_fits(image: Image, facts: ImageFacts, root_gb: int) -> None:
    if root_gb and facts.virtual_size > root_gb * GIB:
        needed = -(-facts.virtual_size // GIB)
        raise exception.ImageUnacceptable(
            image=image.id,
            reason=f"its disk has {needed} GiB, and the flavor's root disk {root_gb}. Choose a larger flavor.",
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file; each holder opens it anew, so that threads of one process exclude each other as well."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _md5(path: Path) -> str:
    """Return the checksum that Glance keeps; it finds damage, not malice."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()

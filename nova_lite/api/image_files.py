# SPDX-License-Identifier: Apache-2.0
"""The content of the embedded image service's images: files in [image] path, named by the images' ids.

An upload is received under another name, hashed on the way, inspected, and only then given its own: a file that is
there is whole.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from oslo_config import cfg

from nova_lite import exception
from nova_lite.image.inspection import inspect
from nova_lite.objects.image import Content

_CHUNK = 1 << 20


class StorageFull(exception.NovaLiteError):
    """There is no room for the content; Glance answers the same."""

    status = 413
    template = "There is not enough disk space for the image. Ask the operator for more, or delete images."


class ImageFiles:
    """The directory of images."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._directory = Path(conf.image.path)
        self._limit = conf.image.max_size_mb << 20

    def path(self, image_id: str) -> Path:
        return self._directory / image_id

    def open(self, image_id: str) -> BinaryIO:
        """:raises NotFound: there is no content."""
        try:
            return self.path(image_id).open("rb")
        except FileNotFoundError:
            raise exception.NotFound(f"The content of image {image_id} is not there.")

    def remove(self, image_id: str) -> None:
        self.path(image_id).unlink(missing_ok=True)

    def receive(self, image_id: str, disk_format: str, source: Any, length: int | None) -> Content:
        """Store a stream as the image's content.

        :param length: the bytes that were announced, None if they were not.
        :raises BodyTooLarge: the content is larger than [image]max_size_mb.
        :raises BadRequest: less came than was announced.
        :raises StorageFull: there is no room for it.
        :raises ImageUnacceptable: it is not a disk of that format, or one that refers to other files.
        """
        if (length or 0) > self._limit:
            raise exception.BodyTooLarge(limit=self._limit)
        with self._partial(image_id) as partial:
            try:
                size, checksum, hash_value = self._write(partial, source)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise StorageFull() from error
                raise
            if length is not None and size != length:
                raise exception.BadRequest(f"The upload broke off after {size} of {length} bytes.")
            facts = inspect(partial, disk_format, image_id)
            os.replace(partial, self.path(image_id))
        return Content(size, checksum, hash_value, facts.virtual_size)

    @contextlib.contextmanager
    def _partial(self, image_id: str) -> Iterator[Path]:
        self._directory.mkdir(parents=True, exist_ok=True)
        partial = self._directory / f".{image_id}.{uuid.uuid4().hex}.partial"
        try:
            yield partial
        finally:
            partial.unlink(missing_ok=True)

    def _write(self, partial: Path, source: Any) -> tuple[int, str, str]:
        size, md5, sha512 = 0, hashlib.md5(usedforsecurity=False), hashlib.sha512()
        with partial.open("xb") as file:
            while chunk := source.read(_CHUNK):
                size += len(chunk)
                if size > self._limit:
                    raise exception.BodyTooLarge(limit=self._limit)
                md5.update(chunk)
                sha512.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        return size, md5.hexdigest(), sha512.hexdigest()

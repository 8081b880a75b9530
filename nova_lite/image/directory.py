# SPDX-License-Identifier: Apache-2.0
"""Images as files of a directory, named by their ids: the api's own store, on its host or on a shared file system."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from oslo_config import cfg

from nova_lite import exception
from nova_lite.image.driver import ImageServiceUnavailable, ImageSource, checked_id
from nova_lite.objects.image import Content, Image

_CHUNK = 1 << 20
_QCOW2_MAGIC = b"QFI\xfb"


class DirectoryImages(ImageSource):
    """The files in [image] path."""

    keeps_status: ClassVar[bool] = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._directory = Path(conf.image.path)

    def fetch(self, image: Image, destination: Path) -> None:
        source = self._directory / checked_id(image.id)
        try:
            shutil.copyfile(source, destination)
        except FileNotFoundError:
            raise exception.ImageUnacceptable(
                image=image.id, reason="its file is not in the directory of images on the host."
            ) from None
        except OSError as error:
            raise exception.BuildFailed(
                reason=f"image {image.id} could not be copied to the host ({error.strerror})."
            ) from error

    def upload(self, image_id: str, path: Path) -> Content | None:
        """Copy the file here; under its final name it is whole."""
        partial = self._directory / f".{checked_id(image_id)}.{uuid.uuid4().hex}.partial"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            try:
                content = _copy(path, partial)
                os.replace(partial, self._directory / image_id)
            finally:
                partial.unlink(missing_ok=True)
        except OSError as error:
            raise exception.SnapshotFailed(
                reason=f"it could not be stored in the directory of images ({error.strerror})."
            ) from error
        return content

    def delete(self, image_id: str) -> None:
        try:
            (self._directory / checked_id(image_id)).unlink(missing_ok=True)
        except OSError as error:
            raise ImageServiceUnavailable(reason=f"the file cannot be removed ({error.strerror}).") from error

    def rotate(self, properties: Mapping[str, str], keep: int) -> None:
        """Do nothing: which images there are stands in the database."""


def _copy(source: Path, destination: Path) -> Content:
    """Copy a file that comes from the hypervisor, and so need not be inspected; hash it on the way."""
    size, md5, sha512, head = 0, hashlib.md5(usedforsecurity=False), hashlib.sha512(), b""
    with source.open("rb") as reader, destination.open("xb") as writer:
        while chunk := reader.read(_CHUNK):
            head = head or chunk[:32]
            size += len(chunk)
            md5.update(chunk)
            sha512.update(chunk)
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())
    virtual_size = int.from_bytes(head[24:32], "big") if head.startswith(_QCOW2_MAGIC) else size
    return Content(size, md5.hexdigest(), sha512.hexdigest(), virtual_size)

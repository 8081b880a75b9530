# SPDX-License-Identifier: Apache-2.0
"""A look at an image file before anything trusts it: is it what it claims to be, and does it point elsewhere?

A qcow2 header can name any file of the host as its backing or data file; a guest with such a disk would read it.
The header is therefore first read by a parser that opens nothing else (oslo.utils'), and only then shown to qemu-img,
which finds what else is broken, under limits and with the format that is already known: it never guesses.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from oslo_utils.imageutils import format_inspector

from nova_lite import exception
from nova_lite.image import qemu_img

QCOW2 = "qcow2"
RAW = "raw"
FORMATS = (QCOW2, RAW)

_SECTOR = 512


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """format is what the content is (qcow2 or raw), virtual_size the bytes of the disk that a guest sees."""

    format: str
    virtual_size: int


def inspect(path: Path, disk_format: str | None = None, image: str | None = None) -> ImageFacts:
    """Check an image file and return what it is.

    The answer is remembered for as long as the file does not change.

    :param disk_format: what the image claims to be; None to find out.
    :param image: the image's id for the message; the file's name unless given.
    :raises ImageUnacceptable: the image must not be used; the message says why.
    """
    status = path.stat()
    return _inspect(path, status.st_ino, status.st_mtime_ns, status.st_size, disk_format, image or path.name)


@functools.lru_cache(maxsize=1024)
def _inspect(path: Path, _inode: int, _mtime_ns: int, size: int, disk_format: str | None, image: str) -> ImageFacts:
    if disk_format is not None and disk_format not in FORMATS:
        raise _unacceptable(image, f"its format is {disk_format}; use {' or '.join(FORMATS)}.")
    if size == 0:
        raise _unacceptable(image, "it is empty.")
    found = _detect(path, image)
    if disk_format is not None and found != disk_format:
        raise _unacceptable(image, f"it claims to be {disk_format}, but its content is {found}.")
    if found == RAW:
        return ImageFacts(RAW, -(-size // _SECTOR) * _SECTOR)
    return ImageFacts(QCOW2, _qcow2_size(path, image))


def _detect(path: Path, image: str) -> str:
    """Tell the format by the content, and refuse what points to other files."""
    try:
        inspector = format_inspector.detect_file_format(str(path))
        if inspector is None:
            raise _unacceptable(image, "its format is not recognised.")
        if inspector.NAME in ("raw", "gpt"):  # a disk with a partition table is raw
            return RAW
        if inspector.NAME != QCOW2:
            raise _unacceptable(image, f"its content is {inspector.NAME}; use {' or '.join(FORMATS)}.")
        inspector.safety_check()
    except format_inspector.SafetyCheckFailed as error:
        reasons = "; ".join(str(failure) for failure in error.failures.values())
        raise _unacceptable(image, f"it is not safe to use ({reasons}). Convert it to a flat qcow2 image.") from error
    except format_inspector.ImageFormatError as error:
        raise _unacceptable(image, f"its format is unclear ({error}).") from error
    return QCOW2


def _qcow2_size(path: Path, image: str) -> int:
    """Return the virtual size, after qemu-img has had its look at the header as well."""
    try:
        info = qemu_img.info(path, QCOW2)
    except (qemu_img.QemuImgError, ValueError) as error:
        # qemu-img's words name the file by its path, which is nobody's business.
        raise _unacceptable(image, f"qemu-img cannot read it ({str(error).replace(str(path), image)}).") from error
    if info.get("backing-filename") or info.get("full-backing-filename"):
        raise _unacceptable(image, "it has a backing file. Convert it to a flat qcow2 image.")
    details = info.get("format-specific", {}).get("data", {})
    if details.get("data-file"):
        raise _unacceptable(image, "its data are in another file. Convert it to a flat qcow2 image.")
    if details.get("encrypt") or info.get("encrypted"):
        raise _unacceptable(image, "it is encrypted, which this cloud does not support.")
    return int(info["virtual-size"])


def _unacceptable(image: str, reason: str) -> exception.ImageUnacceptable:
    return exception.ImageUnacceptable(image=image, reason=reason)

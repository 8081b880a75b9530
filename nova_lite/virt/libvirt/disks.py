# SPDX-License-Identifier: Apache-2.0
"""The files of an instance: root, ephemeral and swap disks, the config drive, the console log.

Each instance has a directory named by its uuid below instances_path. The root disk is a qcow2 overlay of the base
image in the compute's cache, which is never written to.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import uuid as uuid_module
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nova_lite import exception
from nova_lite.image import inspection, qemu_img
from nova_lite.objects.flavor import Flavor
from nova_lite.virt.libvirt import config_drive
from nova_lite.virt.libvirt.reasons import without_paths

LOG = logging.getLogger(__name__)

DISK = "disk"
CDROM = "cdrom"

GIB = 1 << 30

# What a directory of an instance's old disks is called after its uuid, while a resize may be reverted.
KEPT_SUFFIX = "_resize"


@dataclass(frozen=True, slots=True)
class Drive:
    """A file that a domain sees as a drive. format is qemu's name (qcow2, raw), device is DISK or CDROM."""

    path: Path
    format: str
    device: str = DISK


class InstanceFiles:
    """What one instance has on the host's file system.

    The directory may be on storage that hosts share. The file "owner" in it names the host that the instance lives on:
    no other removes it, and what bears a host's own name without a domain there is a remain.

    :param host: the name of this host among the compute services.
    """

    def __init__(self, instances_path: Path, uuid: str, host: str) -> None:
        # The name becomes a path that is removed as a tree: nothing but a uuid may get there.
        self.uuid = str(uuid_module.UUID(uuid))
        self.directory = instances_path / self.uuid
        self.kept_directory = instances_path / (self.uuid + KEPT_SUFFIX)
        self.console_log = self.directory / "console.log"
        self._host = host

    def make(self, flavor: Flavor, image: Path | None, drive: dict[str, bytes] | None) -> list[Drive]:
        """Make all files anew, and return the drives in the order that the guest sees them.

        :param drive: the config drive's files by path, None for no config drive.
        :raises BuildFailed: the host could not make them.
        """
        self.remove()
        try:
            self.directory.mkdir(parents=True, mode=0o755)
            self.take_over()
            # Made here so that the service can read it, whoever writes to it.
            self.console_log.touch(mode=0o640)
            drives = self._disks(flavor, image)
            if drive is not None:
                path = self.directory / "disk.config"
                config_drive.write(drive, path)
                drives.append(Drive(path, "raw", CDROM))
        except (OSError, subprocess.SubprocessError, qemu_img.QemuImgError) as error:
            LOG.error("Files not made directory=%s reason=%s", self.directory, error)
            reason = (error.strerror or "I/O error") if isinstance(error, OSError) else without_paths(str(error))
            raise exception.BuildFailed(reason=f"its disks could not be made on the host ({reason}).") from error
        return drives

    def remove(self) -> None:
        """Remove every file of the instance, kept old disks as well; none is no error, another host's are left."""
        if self.owner() not in (None, self._host):
            LOG.info("Files left, they are of another host directory=%s owner=%s", self.directory, self.owner())
            return
        self.unmark()
        for directory in (self.directory, self.kept_directory):
            with suppress(FileNotFoundError):
                shutil.rmtree(directory)

    def mark(self, move: str) -> str:
        """Put a file beside the directory by which the source of a move finds out whether storage is shared.

        :return: the file's name.
        """
        self.unmark()
        name = f"{self._mark_prefix}{move}"
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        (self.directory.parent / name).touch()
        return name

    def unmark(self) -> None:
        """Remove the marks of all moves of the instance."""
        for path in self.directory.parent.glob(f"{self._mark_prefix}*"):
            path.unlink(missing_ok=True)

    @property
    def _mark_prefix(self) -> str:
        return f".moving-{self.uuid}-"

    def owner(self) -> str | None:
        """Return the host that the instance lives on, by its files; None if they do not say."""
        return owner_of(self.directory)

    def take_over(self) -> None:
        """Note that the instance lives on this host from now on."""
        self.hand_over(self._host)

    def hand_over(self, host: str) -> None:
        """Note that the instance lives on that host from now on."""
        partial = self.directory / "owner.partial"
        partial.write_text(host)
        partial.rename(self.directory / "owner")

    def read_console(self, lines: int | None, limit: int) -> str:
        """Return the last lines of the console (all that is kept for None), at most limit bytes of it.

        Of so many lines the last has no line feed, which would begin another one.
        """
        kept = b""
        # virtlogd starts a new file when one has grown, and keeps the old one as .0.
        for path in (self.console_log, self.console_log.with_name("console.log.0")):
            if len(kept) >= limit:
                break
            kept = _tail(path, limit - len(kept)) + kept
        text = kept.decode(errors="replace")
        if lines is None:
            return text
        return "\n".join(text.removesuffix("\n").split("\n")[-lines:] if lines else [])

    def _disks(self, flavor: Flavor, image: Path | None) -> list[Drive]:
        drives = []
        if image is not None:
            drives.append(self._overlay(image, flavor.root_gb))
        elif flavor.root_gb:
            drives.append(self._blank("disk", flavor.root_gb * GIB))
        if flavor.ephemeral_gb:
            drives.append(self._blank("disk.eph0", flavor.ephemeral_gb * GIB))
        if flavor.swap_mb:
            drives.append(self._swap(flavor.swap_mb << 20))
        return drives

    def _overlay(self, image: Path, root_gb: int) -> Drive:
        facts = inspection.inspect(image)
        if root_gb and facts.virtual_size > root_gb * GIB:
            raise exception.BuildFailed(
                reason=f"the image needs a disk of {-(-facts.virtual_size // GIB)} GiB, and the flavor has {root_gb}."
            )
        path = self.directory / "disk"
        size = root_gb * GIB or facts.virtual_size
        base = ["-b", str(image.absolute()), "-F", facts.format]
        qemu_img.run(["create", "-q", "-f", "qcow2", *base, path, str(size)])
        return Drive(path, "qcow2")

    def _blank(self, name: str, size: int) -> Drive:
        path = self.directory / name
        qemu_img.run(["create", "-q", "-f", "qcow2", path, str(size)])
        return Drive(path, "qcow2")

    def _swap(self, size: int) -> Drive:
        """Make a disk that the guest can swap to as it is; mkswap wants a raw file, which stays sparse."""
        path = self.directory / "disk.swap"
        path.touch(mode=0o640)
        os.truncate(path, size)
        subprocess.run(["mkswap", "-q", "-L", "swap", str(path)], check=True, capture_output=True, timeout=60)
        return Drive(path, "raw")


def owner_of(directory: Path) -> str | None:
    """Return the host whose files are in the directory; None if it does not say, or is not there."""
    try:
        return (directory / "owner").read_text() or None
    except (FileNotFoundError, NotADirectoryError):
        return None


def disk_size_gb(instances_path: Path) -> int:
    """Return the GiB of the file system that instances are on."""
    instances_path.mkdir(parents=True, exist_ok=True)
    status = os.statvfs(instances_path)
    return status.f_blocks * status.f_frsize // GIB


def _tail(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - limit))
            return file.read(limit)
    except FileNotFoundError:
        return b""

# SPDX-License-Identifier: Apache-2.0
"""The files of an instance that moves: which go along, which are kept aside, what becomes of them on the other side.

Root and ephemeral disks go along. Swap is made anew, for a guest that was off expects nothing of it; the config drive
is made anew from the metadata; the console log stays with the host.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nova_lite import exception
from nova_lite.image import inspection, qemu_img
from nova_lite.objects.flavor import Flavor
from nova_lite.virt.libvirt import config_drive
from nova_lite.virt.libvirt.disks import CDROM, GIB, Drive, InstanceFiles
from nova_lite.virt.libvirt.reasons import without_paths

LOG = logging.getLogger(__name__)

ROOT, EPHEMERAL, SWAP, CONFIG = "disk", "disk.eph0", "disk.swap", "disk.config"

# Written last at the destination: the disks that it names have come as a whole.
ARRIVED = "arrived.json"

# How fast a host's disk is at the least, in bytes per second: what bounds the time of a copy.
_SLOWEST = 5 << 20


class MovingFiles(InstanceFiles):
    """What one instance has on the host's file system, while it comes or goes."""

    # -- looking -----------------------------------------------------------------------------------------------------

    def is_shared(self) -> bool:
        """Tell whether the instance, which lives on another host, has its disks on storage that this host sees.

        :raises BuildFailed: there are disks, and nothing says whose they are.
        """
        if not (self.directory / ROOT).exists():
            return False
        owner = self.owner()
        if owner is None:
            raise exception.BuildFailed(
                reason="the host has disks of it and does not know whose they are. Ask the operator to look at them."
            )
        return owner != self._host

    def sizes(self) -> dict[str, int]:
        """Return the bytes that a guest sees, by disk."""
        return {
            name: int(qemu_img.info(self.directory / name, inspection.QCOW2)["virtual-size"])
            for name in (ROOT, EPHEMERAL)
            if (self.directory / name).exists()
        }

    def base(self) -> Path | None:
        """Return the image that the root disk is an overlay of; None if it is whole in itself."""
        if not (self.directory / ROOT).exists():
            return None
        found = qemu_img.info(self.directory / ROOT, inspection.QCOW2).get("backing-filename")
        return Path(found) if found else None

    # -- coming ------------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make an empty directory for disks that are to come."""
        self.remove()
        self.directory.mkdir(parents=True, mode=0o755)
        self.take_over()

    def have_arrived(self, move: str) -> bool:
        """Tell whether all disks of this move have come."""
        try:
            return bool(json.loads((self.directory / ARRIVED).read_text())["move"] == move)
        except FileNotFoundError:
            return False

    def complete(self, flavor: Flavor, image: Path | None, drive: Mapping[str, bytes] | None) -> list[Drive]:
        """Make of the disks that have come what the flavor says, and return the drives in the guest's order.

        :raises OSError, QemuImgError, SubprocessError: the host could not.
        """
        self.console_log.touch(mode=0o640)
        drives = []
        if (self.directory / ROOT).exists():
            drives.append(self._grown(ROOT, flavor.root_gb * GIB, image))
        elif flavor.root_gb:
            drives.append(self._blank(ROOT, flavor.root_gb * GIB))
        if (self.directory / EPHEMERAL).exists():
            drives.append(self._grown(EPHEMERAL, flavor.ephemeral_gb * GIB, None))
        elif flavor.ephemeral_gb:
            drives.append(self._blank(EPHEMERAL, flavor.ephemeral_gb * GIB))
        (self.directory / SWAP).unlink(missing_ok=True)
        if flavor.swap_mb:
            drives.append(self._swap(flavor.swap_mb << 20))
        drives += self._config(drive)
        return drives

    def found(self, drive: Mapping[str, bytes] | None) -> list[Drive]:
        """Return the disks that are there as drives, with a new config drive."""
        formats = {ROOT: "qcow2", EPHEMERAL: "qcow2", SWAP: "raw"}
        drives = [Drive(self.directory / name, formats[name]) for name in formats if (self.directory / name).exists()]
        return drives + self._config(drive)

    def _config(self, drive: Mapping[str, bytes] | None) -> list[Drive]:
        if drive is None:
            return []
        config_drive.write(dict(drive), self.directory / CONFIG)
        return [Drive(self.directory / CONFIG, "raw", CDROM)]

    def _grown(self, name: str, size: int, image: Path | None) -> Drive:
        """Point the disk to this host's copy of its base, and grow it; a disk never shrinks."""
        path = self.directory / name
        base = self.base() if name == ROOT else None
        if base is not None and image is not None and base != image.absolute():
            facts = inspection.inspect(image)
            # "Unsafe" is right: the other file has the same content, so nothing is to be copied.
            backing = ["-b", str(image.absolute()), "-F", facts.format]
            qemu_img.run(["rebase", "-u", "-f", "qcow2", *backing, path])
        if size > self.sizes()[name]:
            qemu_img.run(["resize", "-q", "-f", "qcow2", path, str(size)])
        return Drive(path, "qcow2")

    # -- going -------------------------------------------------------------------------------------------------------

    def to_send(self, base_there: str | None) -> dict[str, Path]:
        """Return what the destination needs by name; the root disk is made whole unless its base is there as well.

        What is made for this is removed by ``sent``.
        """
        files = {name: self.directory / name for name in (ROOT, EPHEMERAL) if (self.directory / name).exists()}
        base = self.base()
        if base is not None and base.name != base_there:
            files[ROOT] = self._flat_root
            qemu_img.run(
                ["convert", "-f", "qcow2", "-O", "qcow2", self.directory / ROOT, self._flat_root],
                timeout=_patience([self.directory / ROOT, base]),
                cpu_seconds=_CPU_SECONDS_OF_A_COPY,
            )
        return files

    def sent(self) -> None:
        """Remove what was made in order to be sent."""
        self._flat_root.unlink(missing_ok=True)

    @property
    def _flat_root(self) -> Path:
        return self.directory / "disk.flat"

    # -- kept aside --------------------------------------------------------------------------------------------------

    def keep(self, move: str, definition: str) -> None:
        """Keep the disks as they are now and the domain's definition aside, unless that was done for this move.

        It is copies that are kept, so that at no time the disks are away from where the domain has them.
        """
        if self.kept_definition(move) is not None:
            return
        partial = self.kept_directory.with_name(self.kept_directory.name + ".partial")
        for directory in (partial, self.kept_directory):
            with suppress(FileNotFoundError):
                shutil.rmtree(directory)
        partial.mkdir(mode=0o755)
        kept = [name for name in (ROOT, EPHEMERAL, CONFIG) if (self.directory / name).exists()]
        for name in kept:
            _copy(self.directory / name, partial / name)
        what = {"move": move, "files": kept, "swap": (self.directory / SWAP).exists(), "definition": definition}
        (partial / "kept.json").write_text(json.dumps(what))
        (partial / "owner").write_text(self._host)
        partial.rename(self.kept_directory)

    def kept_definition(self, move: str) -> str | None:
        """Return the definition that was kept for this move; None if nothing was, or it was forgotten."""
        what = self._kept()
        return str(what["definition"]) if what.get("move") == move else None

    def bring_back(self, flavor: Flavor) -> None:
        """Put the kept disks in the place of those that are there. It can be repeated until they are forgotten."""
        what = self._kept()
        for name in (ROOT, EPHEMERAL, CONFIG):
            if name not in what["files"]:
                (self.directory / name).unlink(missing_ok=True)
            elif (self.kept_directory / name).exists():
                os.replace(self.kept_directory / name, self.directory / name)
        (self.directory / SWAP).unlink(missing_ok=True)
        if what["swap"]:
            self._swap(flavor.swap_mb << 20)
        self.take_over()

    def forget_kept(self) -> None:
        """Remove what was kept; nothing is no error."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.kept_directory)

    def _kept(self) -> dict[str, Any]:
        try:
            answer = json.loads((self.kept_directory / "kept.json").read_text())
        except FileNotFoundError:
            return {}
        return answer if isinstance(answer, dict) else {}


# A copy of a large disk needs more of the processor than the check of an image, whose bound is against hostile ones.
_CPU_SECONDS_OF_A_COPY = 24 * 3600


def _patience(paths: list[Path]) -> float:
    """Return the seconds that copying these files may take."""
    return 60 + sum(path.stat().st_blocks * 512 for path in paths) / _SLOWEST


def _copy(source: Path, destination: Path) -> None:
    """Copy a disk; where the file system can, the copies share their blocks."""
    subprocess.run(
        ["cp", "--reflink=auto", "--sparse=always", source, destination],
        check=True,
        capture_output=True,
        timeout=_patience([source]),
    )


def wanted_sizes(flavor: Flavor) -> dict[str, int]:
    """Return the bytes that the flavor gives each disk; a root disk of 0 is as large as its image."""
    return {ROOT: flavor.root_gb * GIB, EPHEMERAL: flavor.ephemeral_gb * GIB}


def check_nothing_shrinks(sizes: Mapping[str, int], wanted: Mapping[str, int]) -> None:
    """Compare the disks with what they are to become.

    :raises MigrationFailed: one would lose its end.
    """
    words = {ROOT: "root", EPHEMERAL: "ephemeral"}
    for name, size in sizes.items():
        room = wanted.get(name, 0)
        if size > room and not (name == ROOT and room == 0):
            raise exception.MigrationFailed(
                reason=f"its {words[name]} disk has {-(-size // GIB)} GiB, and the new flavor {room // GIB}. "
                "Disks do not shrink; choose a larger flavor."
            )


@contextmanager
def explained(kind: type[exception.NovaLiteError]) -> Iterator[None]:
    """Raise what can go wrong with files as an error of this kind, with a reason for the user."""
    try:
        yield
    except (OSError, subprocess.SubprocessError, qemu_img.QemuImgError) as error:
        LOG.error("Files of a move failed reason=%s", error)
        reason = (error.strerror or "I/O error") if isinstance(error, OSError) else without_paths(str(error))
        raise kind(reason=f"its disks could not be made ready on the host ({reason}).") from error

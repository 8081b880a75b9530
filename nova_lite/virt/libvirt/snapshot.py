# SPDX-License-Identifier: Apache-2.0
"""A copy of a server's root disk as it is at one moment, flat and of its own, while the guest goes on.

Of a guest that has power, QEMU itself writes the copy: a backup job (https://libvirt.org/formatbackup.html) keeps what
the guest overwrites in the meantime, so the guest neither stops nor sees anything. Copying the file below a running
QEMU would tear it, and pausing the guest for as long as that takes would be seen. Of one without power, qemu-img
copies. Power may come and go while one of the two is at work; the other then begins anew.
"""

from __future__ import annotations

import logging
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import libvirt

from nova_lite import exception
from nova_lite.image import qemu_img
from nova_lite.objects import instance as states
from nova_lite.virt.libvirt import guest
from nova_lite.virt.libvirt.connection import Connection, HypervisorRefused, VirConnect
from nova_lite.virt.libvirt.guest import Guest
from nova_lite.virt.libvirt.reasons import without_paths
from nova_lite.virt.libvirt.workers import stop_if_given_up

LOG = logging.getLogger(__name__)

T = TypeVar("T")

# Look at a copy at least so often, in seconds.
_LOOK_INTERVAL = 0.5
# The same of one that is being broken off, and how long that may take.
_END_INTERVAL = 0.05
_ABORT_TIMEOUT = 30.0
_ATTEMPTS = 3
_POWERED = (states.RUNNING, states.POWER_PAUSED)


class _PowerChanged(Exception):
    """The guest got power, or lost it, while it was copied as one that had none, or had some."""


class Copier:
    """Copies disks of one hypervisor.

    :param timeout: seconds that a copy may take.
    """

    def __init__(self, connection: Connection, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout

    def copy(self, uuid: str, disk: Path, destination: Path, given_up: Callable[[], bool]) -> None:
        """Write the disk of an instance to the destination, a qcow2 file without a backing file.

        :raises DomainNotFound:
        :raises SnapshotFailed:
        """
        deadline = time.monotonic() + self._timeout
        for _attempt in range(_ATTEMPTS):
            destination.unlink(missing_ok=True)
            try:
                if self._power_state(uuid) in _POWERED:
                    self._back_up(uuid, disk, destination, given_up, deadline)
                else:
                    self._convert(uuid, disk, destination, deadline)
            except _PowerChanged:
                LOG.info("Copied anew, since the guest's power changed instance=%s", uuid)
                continue
            except qemu_img.QemuImgError as error:
                raise exception.SnapshotFailed(reason=f"{without_paths(str(error))}.") from error
            return
        raise exception.SnapshotFailed(reason="the server was started and stopped again and again meanwhile.")

    def _power_state(self, uuid: str) -> int:
        return self._on_guest(uuid, "tell the server's power state", Guest.power_state)

    # -- without power

    def _convert(self, uuid: str, disk: Path, destination: Path, deadline: float) -> None:
        seconds = max(1.0, deadline - time.monotonic())
        copy: list[str | Path] = ["convert", "-f", "qcow2", "-O", "qcow2", disk, destination]
        try:
            qemu_img.run(copy, timeout=seconds, cpu_seconds=int(seconds))
        except qemu_img.QemuImgError:
            if self._power_state(uuid) in _POWERED:  # QEMU has its lock on the disk then
                raise _PowerChanged from None
            raise
        if self._power_state(uuid) in _POWERED:
            raise _PowerChanged

    # -- with power

    def _back_up(self, uuid: str, disk: Path, destination: Path, given_up: Callable[[], bool], deadline: float) -> None:
        # Made here, so that it is ours: libvirt lends it to QEMU and gives it back.
        size = qemu_img.info(disk, "qcow2")["virtual-size"]
        qemu_img.run(["create", "-q", "-f", "qcow2", destination, str(size)])
        self._end_job(uuid)
        try:
            self._on_guest(uuid, "copy the server's disk", lambda found: _begin(found, disk, destination))
        except HypervisorRefused as error:
            if error.code == libvirt.VIR_ERR_OPERATION_INVALID and self._power_state(uuid) not in _POWERED:
                raise _PowerChanged from error
            raise
        try:
            self._wait(uuid, given_up, deadline)
        except exception.NovaLiteError:
            self._end_job(uuid)
            raise
        if not self._on_guest(uuid, "tell how the copy ended", _has_succeeded):
            if self._power_state(uuid) not in _POWERED:
                raise _PowerChanged
            raise exception.SnapshotFailed(reason="the hypervisor broke the copy off; its log says why.")

    def _wait(self, uuid: str, given_up: Callable[[], bool], deadline: float) -> None:
        while True:
            seen = self._connection.changes.count()
            if not self._on_guest(uuid, "tell how far the copy is", _is_busy):
                return
            if given_up():
                raise exception.SnapshotFailed(reason="the server is being deleted.")
            if time.monotonic() > deadline:
                raise exception.SnapshotFailed(reason=f"copying the disk took longer than {self._timeout:g} s.")
            self._connection.changes.wait(seen, _LOOK_INTERVAL)

    def _end_job(self, uuid: str) -> None:
        """End a copy that nobody waits for any more: of this attempt, or of a process that died.

        QEMU takes a moment to let go of the disk.
        """
        deadline = time.monotonic() + _ABORT_TIMEOUT
        while True:
            seen = self._connection.changes.count()
            if not self._on_guest(uuid, "end the copy of the server's disk", _end_job):
                return
            if time.monotonic() > deadline:
                raise exception.SnapshotFailed(reason="another copy of the server's disk does not end.")
            self._connection.changes.wait(seen, _END_INTERVAL)

    def _on_guest(self, uuid: str, what: str, act: Callable[[Guest], T]) -> T:
        def find_and_act(conn: VirConnect) -> T:
            found = guest.find(conn, uuid)
            if found is None:
                raise exception.DomainNotFound(uuid=uuid)
            stop_if_given_up()
            return act(found)

        return self._connection.call(what, find_and_act)


def _begin(found: Guest, disk: Path, destination: Path) -> None:
    xml = backup_xml(found.domain.XMLDesc(0), disk, destination)
    found.domain.backupBegin(xml, None, libvirt.VIR_DOMAIN_BACKUP_BEGIN_REUSE_EXTERNAL)


def backup_xml(domain_xml: str, disk: Path, destination: Path) -> str:
    """Return the description of a backup of this one of the domain's disks.

    :raises SnapshotFailed: the domain has no such disk.
    """
    backup = ElementTree.Element("domainbackup", mode="push")
    disks = ElementTree.SubElement(backup, "disks")
    wanted = False
    for each in ElementTree.fromstring(domain_xml).iterfind("devices/disk"):
        source, target = each.find("source"), each.find("target")
        if target is None:
            continue
        mine = source is not None and source.get("file") == str(disk)
        described = ElementTree.SubElement(disks, "disk", name=target.get("dev", ""), backup="yes" if mine else "no")
        if mine:
            wanted = True
            described.set("type", "file")
            ElementTree.SubElement(described, "driver", type="qcow2")
            ElementTree.SubElement(described, "target", file=str(destination))
    if not wanted:
        raise exception.SnapshotFailed(reason="the server has no root disk of its own.")
    return ElementTree.tostring(backup, encoding="unicode")


def _is_busy(found: Guest) -> bool:
    try:
        return bool(found.domain.jobInfo()[0] not in (libvirt.VIR_DOMAIN_JOB_NONE, libvirt.VIR_DOMAIN_JOB_COMPLETED))
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_OPERATION_INVALID:  # it has no power any more
            return False
        raise


def _has_succeeded(found: Guest) -> bool:
    """Tell how the last job ended; a guest that has lost its power does not say."""
    try:
        stats = found.domain.jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED)
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_OPERATION_INVALID:
            return False
        raise
    backup = stats.get("operation") == libvirt.VIR_DOMAIN_JOB_OPERATION_BACKUP
    return backup and stats.get("type") == libvirt.VIR_DOMAIN_JOB_COMPLETED and bool(stats.get("success", True))


def _end_job(found: Guest) -> bool:
    """Break the job off; tell whether there was one."""
    if not _is_busy(found):
        return False
    try:
        found.domain.abortJob()
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_OPERATION_INVALID:  # it has just ended, or is about to
            raise
    return True

# SPDX-License-Identifier: Apache-2.0
"""Files from this host into a directory of another, over that host's libvirt daemon: no listener or key of our own.

libvirt writes where it has a storage pool, so one is made of the directory for as long as it takes. Holes in files are
not sent. A daemon that stops answering in the middle is given up once nothing has moved for a while.
"""

from __future__ import annotations

import logging
import os
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

import libvirt

from nova_lite import exception
from nova_lite.virt.libvirt import event_loop
from nova_lite.virt.libvirt.connection import VirConnect
from nova_lite.virt.libvirt.reasons import without_paths
from nova_lite.virt.libvirt.workers import DeadlinePool, PoolStuckError, stop_if_given_up

LOG = logging.getLogger(__name__)

_AT_ONCE = 16  # transfers of one process; the core asks for far fewer


@dataclass(frozen=True, slots=True)
class Target:
    """Where files go: the directory on the host of that daemon, and who is to own the files there."""

    uri: str
    hostname: str
    directory: str
    pool: str
    uid: int
    gid: int


@dataclass
class _Movement:
    """When bytes were last seen to move, by the monotonic clock, and how many have been sent."""

    last: float = field(default_factory=time.monotonic)
    sent: int = 0

    def note(self, count: int) -> None:
        self.last, self.sent = time.monotonic(), self.sent + count


class Sender:
    """Sends files to other hosts.

    :param stall_timeout: seconds without movement after which a transfer has failed.
    """

    def __init__(self, stall_timeout: float) -> None:
        self._stall_timeout = stall_timeout
        self._pool = DeadlinePool("libvirt-sender", _AT_ONCE)

    def send(self, target: Target, files: Mapping[str, Path], last: tuple[str, bytes]) -> None:
        """Send files by name, and when they are there, a small one that says so.

        Files of these names that are there already are replaced. What a failed transfer has left is removed, unless
        the other side cannot be reached any more.

        :raises MigrationFailed:
        """
        event_loop.ensure_running()
        movement = _Movement()
        began = time.monotonic()
        try:
            transfer = self._pool.begin(partial(_send_all, target, files, last, movement))
        except PoolStuckError:
            raise exception.MigrationFailed(reason="too many transfers of disks to other hosts hang.") from None
        while not transfer.ended(movement.last + self._stall_timeout - time.monotonic()):
            if time.monotonic() - movement.last >= self._stall_timeout:
                transfer.give_up()
                raise exception.MigrationFailed(
                    reason=f"the transfer of its disks to host {target.hostname} stood still for "
                    f"{self._stall_timeout:g} s."
                )
        transfer.result()
        seconds = time.monotonic() - began
        LOG.info("Disks sent to=%s pool=%s bytes=%d seconds=%.1f", target.hostname, target.pool, movement.sent, seconds)

    def stop(self) -> None:
        """Let the threads end when they have done what they are at."""
        self._pool.close()


def remove_pool(conn: VirConnect, name: str) -> None:
    """Remove the pool that a transfer which was killed has left here; the files stay."""
    # None of that name, no storage driver at all: nothing to remove.
    with suppress(libvirt.libvirtError):
        conn.storagePoolLookupByName(name).destroy()


def _send_all(target: Target, files: Mapping[str, Path], last: tuple[str, bytes], movement: _Movement) -> None:
    conn = None
    try:
        conn = libvirt.open(target.uri)
        _fill_pool(conn, target, files, last, movement)
        return
    except libvirt.libvirtError as error:
        reason = error.get_error_message() or str(error)
    except OSError as error:
        reason = error.strerror or str(error)
    finally:
        if conn is not None:
            with suppress(libvirt.libvirtError):
                conn.close()
    LOG.error("Disks not sent to=%s uri=%s reason=%s", target.hostname, target.uri, reason)
    raise exception.MigrationFailed(
        reason=f"its disks could not be brought to host {target.hostname} ({without_paths(reason)})."
    )


def _fill_pool(
    conn: VirConnect, target: Target, files: Mapping[str, Path], last: tuple[str, bytes], movement: _Movement
) -> None:
    """Make the pool, the files in it, and remove the pool; if it fails, the files as well."""
    remove_pool(conn, target.pool)
    pool = conn.storagePoolCreateXML(_pool_xml(target), 0)
    name, content = last
    try:
        for stale in [*files, name]:
            _remove_file(pool, stale)
        for file, path in files.items():
            with path.open("rb") as opened:
                size = os.fstat(opened.fileno()).st_size
                _send(conn, pool.createXML(_volume_xml(target, file, size), 0), _FileContent(opened.fileno()), movement)
        _send(conn, pool.createXML(_volume_xml(target, name, len(content)), 0), _BytesContent(content), movement)
    except BaseException:
        for file in [*files, name]:
            with suppress(libvirt.libvirtError):
                _remove_file(pool, file)
        raise
    finally:
        with suppress(libvirt.libvirtError):
            pool.destroy()


def _remove_file(pool: object, name: str) -> None:
    stop_if_given_up()
    try:
        volume = pool.storageVolLookupByName(name)  # type: ignore[attr-defined]
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_STORAGE_VOL:
            return
        raise
    volume.delete(0)


class _FileContent:
    """A file to be sent, and where its holes are."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, count: int) -> bytes:
        """Return the next bytes."""
        return os.read(self._descriptor, count)

    def section(self) -> tuple[bool, int]:
        """Tell whether data follow or a hole, and how long."""
        here = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        end = os.fstat(self._descriptor).st_size
        try:
            data = os.lseek(self._descriptor, here, os.SEEK_DATA)
            following = (True, os.lseek(self._descriptor, here, os.SEEK_HOLE) - here)
        except OSError:  # ENXIO: no data up to the end
            data, following = end, (False, 0)
        os.lseek(self._descriptor, here, os.SEEK_SET)
        return (False, data - here) if data > here else following

    def skip(self, count: int) -> None:
        """Go on behind a hole."""
        os.lseek(self._descriptor, count, os.SEEK_CUR)


class _BytesContent:
    """A few bytes to be sent."""

    def __init__(self, content: bytes) -> None:
        self._rest = content

    def read(self, count: int) -> bytes:
        """Return the next bytes."""
        following, self._rest = self._rest[:count], self._rest[count:]
        return following

    def section(self) -> tuple[bool, int]:
        """Tell that only data follow."""
        return bool(self._rest), len(self._rest)

    def skip(self, count: int) -> None:
        """Never happens: there are no holes."""


def _send(conn: VirConnect, volume: object, content: _FileContent | _BytesContent, movement: _Movement) -> None:
    def read(_stream: object, count: int, _opaque: object) -> bytes:
        stop_if_given_up()
        data = content.read(count)
        movement.note(len(data))
        return data

    def skip(_stream: object, count: int, _opaque: object) -> int:
        movement.note(0)
        content.skip(count)
        return 0

    section: Callable[[object, object], tuple[bool, int]] = lambda _stream, _opaque: content.section()  # noqa: E731
    stream = conn.newStream(0)
    volume.upload(stream, 0, 0, libvirt.VIR_STORAGE_VOL_UPLOAD_SPARSE_STREAM)  # type: ignore[attr-defined]
    stream.sparseSendAll(read, section, skip, None)
    stream.finish()
    movement.note(0)


def _pool_xml(target: Target) -> str:
    pool = Element("pool", type="dir")
    SubElement(pool, "name").text = target.pool
    SubElement(SubElement(pool, "target"), "path").text = target.directory
    return ElementTree.tostring(pool, encoding="unicode")


def _volume_xml(target: Target, name: str, size: int) -> str:
    """Describe a file. Whatever is in it, it is raw to libvirt, which is to store just these bytes."""
    volume = Element("volume")
    SubElement(volume, "name").text = name
    SubElement(volume, "capacity", unit="bytes").text = str(size)
    SubElement(volume, "allocation", unit="bytes").text = "0"
    where = SubElement(volume, "target")
    SubElement(where, "format", type="raw")
    permissions = SubElement(where, "permissions")
    for tag, value in (("mode", "0640"), ("owner", str(target.uid)), ("group", str(target.gid))):
        SubElement(permissions, tag).text = value
    return ElementTree.tostring(volume, encoding="unicode")

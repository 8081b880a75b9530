# SPDX-License-Identifier: Apache-2.0
"""libvirt's event loop, of which a process has one: it carries events, keepalive answers and lost connections.

Callbacks run on its thread. They must be quick and must never call libvirt, or all connections stand still.
"""

from __future__ import annotations

import logging
import threading

import libvirt

LOG = logging.getLogger(__name__)

_lock = threading.Lock()
_thread: threading.Thread | None = None


def ensure_running() -> None:
    """Start the event loop unless it runs; this has to come before the first connection of the process."""
    global _thread
    with _lock:
        if _thread is not None:
            return
        libvirt.registerErrorHandler(_ignore, None)
        libvirt.virEventRegisterDefaultImpl()
        _thread = threading.Thread(target=_run, name="libvirt-events", daemon=True)
        _thread.start()


def _ignore(_context: object, _error: object) -> None:
    """Keep libvirt from printing errors to stderr; they are raised as exceptions all the same."""


def _run() -> None:
    while True:
        try:
            libvirt.virEventRunDefaultImpl()
        except libvirt.libvirtError:
            LOG.exception("libvirt's event loop failed once; it goes on")

# SPDX-License-Identifier: Apache-2.0
"""The way to libvirt: kept up in the background, and never able to hang a caller.

There is one connection to watch the daemon by, which carries events and keepalive and is never called, and one for each
worker thread, which makes one call at a time. Sharing a single one was tried and given up: with libvirt 9.0 the client
crashes in its wait for an answer (virNetClientIOEventLoop) when a second thread or its own keepalive wakes it, which
looks like CVE-2024-4418; and the daemon works at no more than max_client_requests (5) calls of one connection, so that
slow ones hold up the others.

Three things can go wrong with the daemon, and each is met by one part:

- it goes away (a restart): the close callback wakes the connector thread, which tries again until it is back. Calls
  wait for that for ``connect_timeout`` seconds. Guests do not notice. Events of the time between are lost, so after
  each connect every domain of ours is announced as changed.
- it hangs (stopped, deadlocked, swapping): each call runs on a thread of a bounded pool, and its caller leaves at the
  deadline. Soon keepalive breaks the watching connection, and from then on calls fail without taking a thread. Those
  that hang come back when the daemon answers or ends.
- it hangs while we connect, when there is no keepalive yet: only the one connector thread is stuck, and calls fail as
  if there were no connection.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import libvirt

from nova_lite import exception
from nova_lite.virt.libvirt import event_loop
from nova_lite.virt.libvirt.reasons import without_paths
from nova_lite.virt.libvirt.workers import Begun, DeadlineExceededError, DeadlinePool, PoolStuckError

LOG = logging.getLogger(__name__)

T = TypeVar("T")

# libvirt.virConnect and libvirt.virDomain have no types of their own.
VirConnect = Any
VirDomain = Any


class HypervisorRefused(exception.NovaLiteError):
    """libvirt answered, with an error. code is libvirt's (VIR_ERR_*), reason its message with all that it names."""

    template = "The hypervisor could not {what}: {reason}"

    def __init__(self, what: str, reason: str, code: int) -> None:
        super().__init__(what=what, reason=without_paths(reason))
        self.what, self.reason, self.code = what, reason, code


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take, in seconds, and how many calls may be under way; see the options of [libvirt]."""

    call_timeout: float = 30.0
    connect_timeout: float = 5.0
    reconnect_interval: float = 1.0
    keepalive_interval: int = 5
    keepalive_count: int = 5
    workers: int = 16


class Changes:
    """Counts lifecycle events, so that one can wait for the next without missing it."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0

    def count(self) -> int:
        """Return how many events there have been."""
        with self._condition:
            return self._count

    def note(self) -> None:
        """Count one event and wake who waits for it."""
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def wait(self, seen: int, timeout: float) -> None:
        """Return when there have been more than ``seen`` events, or after timeout seconds."""
        with self._condition:
            self._condition.wait_for(lambda: self._count > seen, timeout)


class Connection:
    """One libvirt daemon, for many threads.

    :param is_ours: tells by name and uuid whether an event is about a domain of ours.
    :param list_ours: lists the uuids of our domains; runs like any call.
    """

    def __init__(
        self,
        uri: str,
        limits: Limits,
        is_ours: Callable[[str, str], bool],
        list_ours: Callable[[VirConnect], list[str]],
    ) -> None:
        self.uri = uri
        self.changes = Changes()
        self._limits, self._is_ours, self._list_ours = limits, is_ours, list_ours
        self._pool = DeadlinePool("libvirt-call", limits.workers)
        self._long_pool = DeadlinePool("libvirt-long", limits.workers)  # apart, so that they cannot be all of a pool
        self._worker = threading.local()
        self._state = threading.Condition()
        self._watch: VirConnect = None
        self._watch_callback: int | None = None
        self._dead: list[VirConnect] = []
        self._generation = 0  # counts the watching connections: those of workers that are older are not to be used
        self._why = "the driver is not started"
        self._wake = threading.Event()
        self._stopping = False
        self._sink: Callable[[str], None] | None = None
        self._pending: dict[str, None] = {}
        self._announce_all = False
        self._has_news = threading.Condition()

    def start(self, sink: Callable[[str], None]) -> None:
        """Connect in the background, and from now on tell the sink the uuids of domains that may have changed."""
        event_loop.ensure_running()
        self._sink = sink
        self._why = "still connecting"
        threading.Thread(target=self._keep_connected, name="libvirt-connector", daemon=True).start()
        threading.Thread(target=self._report, name="libvirt-reporter", daemon=True).start()

    def stop(self) -> None:
        """Close the connections; a daemon that hangs is left to itself after call_timeout seconds."""
        with self._state:
            self._stopping = True
            watch, self._watch, self._why = self._watch, None, "the driver is stopped"
            self._state.notify_all()
        self._wake.set()
        with self._has_news:
            self._has_news.notify_all()
        if watch is not None:
            try:
                self._pool.run(lambda: _close(watch, self._watch_callback), self._limits.call_timeout)
            except (DeadlineExceededError, PoolStuckError):
                LOG.warning("libvirt hung while its connection was closed uri=%s", self.uri)
        self._pool.close()
        self._long_pool.close()

    def call(self, what: str, function: Callable[[VirConnect], T], timeout: float | None = None) -> T:
        """Run a function of a connection on a worker thread, and return what it returns.

        libvirt's objects must not leave the function: using them would be a call without a deadline.

        :param what: completes "The hypervisor could not ...".
        :param timeout: seconds; call_timeout unless given.
        :raises HypervisorUnavailable: there is no connection, it was lost, or there was no answer in time.
        :raises HypervisorRefused: libvirt answered with an error.
        """
        seconds = self._limits.call_timeout if timeout is None else timeout
        generation = self._connected(min(seconds, self._limits.connect_timeout))
        try:
            return self._pool.run(lambda: self._perform(generation, what, function), seconds)
        except DeadlineExceededError:
            raise exception.HypervisorUnavailable(
                reason=f"libvirt did not {what} within {seconds:g} s; see whether it hangs."
            ) from None
        except PoolStuckError:
            raise exception.HypervisorUnavailable(
                reason=f"all {self._limits.workers} calls to libvirt hang; see whether it does."
            ) from None

    def begin(self, what: str, function: Callable[[VirConnect], T]) -> Begun[T]:
        """Begin a call that may rightly take long, as a migration does, and return at once.

        Whoever begins it sees to it that it ends, and gives it up if it does not. It raises as ``call`` does.
        """
        generation = self._connected(self._limits.connect_timeout)
        try:
            return self._long_pool.begin(lambda: self._perform(generation, what, function))
        except PoolStuckError:
            raise exception.HypervisorUnavailable(
                reason=f"all {self._limits.workers} long calls to libvirt hang; see whether it does."
            ) from None

    def _connected(self, timeout: float) -> int:
        """Wait until the daemon can be called; return the generation of the connection that says so."""
        with self._state:
            self._state.wait_for(lambda: self._watch is not None or self._stopping, timeout)
            if self._watch is None:
                raise exception.HypervisorUnavailable(reason=f"no connection to libvirt: {without_paths(self._why)}.")
            return self._generation

    # -- the worker threads ------------------------------------------------------------------------------------------

    def _perform(self, generation: int, what: str, function: Callable[[VirConnect], T]) -> T:
        conn = None
        try:
            conn = self._own_connection(generation)
            return function(conn)
        except libvirt.libvirtError as error:
            failure = self._failure(conn, what, error)
        # Raised out here, for libvirt's error holds on to the objects of the call: whoever let go of it last would free
        # them, and freeing the last one of a connection is a call.
        raise failure

    def _own_connection(self, generation: int) -> VirConnect:
        """Return this thread's connection, made anew unless it is alive and of this generation."""
        conn, made = getattr(self._worker, "conn", None), getattr(self._worker, "generation", None)
        if conn is not None and made == generation and _is_alive(conn):
            return conn
        self._worker.conn = None
        if conn is not None:
            _close(conn)
        self._worker.conn, self._worker.generation = libvirt.open(self.uri), generation
        return self._worker.conn

    def _failure(self, conn: VirConnect | None, what: str, error: libvirt.libvirtError) -> exception.NovaLiteError:
        reason, code = error.get_error_message() or str(error), error.get_error_code() or 0
        if conn is None or not _is_alive(conn):
            self._wake.set()
            return exception.HypervisorUnavailable(
                reason=f"the connection to libvirt broke when it was to {what}: {without_paths(reason)}"
            )
        return HypervisorRefused(what, reason, code)

    # -- the connector thread ----------------------------------------------------------------------------------------

    def _keep_connected(self) -> None:
        while not self._stopping:
            watch = self._watch
            if watch is not None and not _is_alive(watch):
                self._lost(watch, "it is not alive")
            self._bury_lost()
            if self._watch is None:
                self._connect()
            self._wake.wait(self._limits.reconnect_interval)
            self._wake.clear()

    def _bury_lost(self) -> None:
        """Free connections that broke; not where that was noticed, since callbacks must not call libvirt."""
        with self._state:
            dead, self._dead = self._dead, []
        for watch in dead:
            _close(watch, self._watch_callback)

    def _connect(self) -> None:
        began = time.monotonic()
        watch = None
        try:
            watch = libvirt.open(self.uri)
            watch.registerCloseCallback(self._on_close, None)
            self._watch_callback = watch.domainEventRegisterAny(
                None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._on_lifecycle, None
            )
            watch.setKeepAlive(self._limits.keepalive_interval, self._limits.keepalive_count)
        except libvirt.libvirtError as error:
            self._note_failure(error.get_error_message() or str(error))
            if watch is not None:
                _close(watch)
            return
        with self._state:
            if not self._stopping:
                self._watch, watch = watch, None
                self._generation += 1
                self._state.notify_all()
        if watch is not None:
            _close(watch, self._watch_callback)
            return
        LOG.info("Connected to libvirt uri=%s seconds=%.2f", self.uri, time.monotonic() - began)
        with self._has_news:
            self._announce_all = True
            self._has_news.notify_all()

    def _note_failure(self, reason: str) -> None:
        with self._state:
            if self._why != reason and not self._stopping:
                LOG.warning("No connection to libvirt, trying on uri=%s reason=%s", self.uri, reason)
                self._why = reason

    def _lost(self, watch: VirConnect, reason: str) -> None:
        with self._state:
            if self._watch is not watch or self._stopping:
                return
            self._dead.append(watch)
            self._watch, self._why = None, f"it was lost ({reason}), connecting again"
        LOG.warning("Lost the connection to libvirt uri=%s reason=%s", self.uri, reason)
        self.changes.note()
        self._wake.set()

    # -- callbacks, on the event loop's thread -----------------------------------------------------------------------

    def _on_close(self, conn: VirConnect, reason: int, _opaque: object) -> None:
        words = {
            libvirt.VIR_CONNECT_CLOSE_REASON_ERROR: "I/O error",
            libvirt.VIR_CONNECT_CLOSE_REASON_EOF: "the daemon closed it",
            libvirt.VIR_CONNECT_CLOSE_REASON_KEEPALIVE: "the daemon does not answer",
        }
        self._lost(conn, words.get(reason, f"reason {reason}"))

    def _on_lifecycle(self, _conn: VirConnect, domain: VirDomain, _event: int, _detail: int, _opaque: object) -> None:
        self.changes.note()
        uuid = domain.UUIDString()
        if self._is_ours(domain.name(), uuid):
            with self._has_news:
                self._pending[uuid] = None
                self._has_news.notify_all()

    # -- the reporter thread -----------------------------------------------------------------------------------------

    def _report(self) -> None:
        while True:
            with self._has_news:
                self._has_news.wait_for(lambda: self._pending or self._announce_all or self._stopping)
                if self._stopping:
                    return
                uuids, self._pending = list(self._pending), {}
                everything, self._announce_all = self._announce_all, False
            if everything:
                uuids += [uuid for uuid in self._all_ours() if uuid not in uuids]
            for uuid in uuids:
                self._tell(uuid)

    def _all_ours(self) -> list[str]:
        try:
            return self.call("list the domains", self._list_ours)
        except exception.NovaLiteError as error:
            # Either the connection broke again, and the next one repeats this, or the periodic report will tell.
            LOG.warning("Domains not announced after connecting reason=%s", error)
            return []

    def _tell(self, uuid: str) -> None:
        assert self._sink is not None
        try:
            self._sink(uuid)
        except Exception:  # noqa: BLE001 - whatever fails in the receiver, the next event must still be told
            LOG.exception("An event was not taken instance=%s", uuid)


def _close(conn: VirConnect, callback: int | None = None) -> None:
    """Close a connection; callbacks hold on to it, so they go first. One that broke asks nothing of the daemon."""
    if callback is not None:
        with suppress(libvirt.libvirtError):
            conn.domainEventDeregisterAny(callback)
    with suppress(libvirt.libvirtError):
        conn.unregisterCloseCallback()
    with suppress(libvirt.libvirtError):
        conn.close()


def _is_alive(conn: VirConnect) -> bool:
    try:
        return bool(conn.isAlive() == 1)
    except libvirt.libvirtError:
        return False

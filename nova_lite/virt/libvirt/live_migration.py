# SPDX-License-Identifier: Apache-2.0
"""Live migration: a running guest is handed from this host's libvirt daemon to the destination's, peer to peer.

The daemons do it between themselves, so a compute service that dies in it harms nothing: whoever comes next finds the
job still running, or the guest here, or gone. That an attempt was begun is noted on this host's own disk: one that has
ended unseen is reported as failed rather than begun once more on disks of which nobody knows the state.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import libvirt
from oslo_config import cfg

from nova_lite import exception
from nova_lite.objects import move as moves
from nova_lite.objects.instance import Instance
from nova_lite.objects.move import Progress
from nova_lite.virt.driver import Destination, Watch
from nova_lite.virt.libvirt import destination_xml, guest
from nova_lite.virt.libvirt.connection import Connection, HypervisorRefused, VirConnect, VirDomain
from nova_lite.virt.libvirt.moving_files import EPHEMERAL, ROOT, MovingFiles, explained
from nova_lite.virt.libvirt.reasons import without_paths
from nova_lite.virt.libvirt.workers import Begun

LOG = logging.getLogger(__name__)

T = TypeVar("T")

_INTERVAL = 0.5  # seconds between two looks at a migration

_DEFINITION = libvirt.VIR_DOMAIN_XML_SECURE | libvirt.VIR_DOMAIN_XML_MIGRATABLE

# Reasons of a pause that say that the guest's newest memory is, or may be, at the destination.
_SWITCHED = (libvirt.VIR_DOMAIN_PAUSED_POSTCOPY, libvirt.VIR_DOMAIN_PAUSED_POSTCOPY_FAILED)


@dataclass(frozen=True, slots=True)
class _Look:
    """What is true of the guest here. state and reason are libvirt's; job tells whether a migration of it runs."""

    state: int | None = None
    reason: int = 0
    job: bool = False
    progress: Progress = Progress()

    @property
    def is_gone(self) -> bool:
        """Whether the guest runs elsewhere: no domain, or a husk of one that was handed over."""
        return self.state is None or (
            self.state == libvirt.VIR_DOMAIN_SHUTOFF and self.reason == libvirt.VIR_DOMAIN_SHUTOFF_MIGRATED
        )


class LiveMigrations:
    """The live migrations away from this host."""

    def __init__(self, conf: cfg.ConfigOpts, connection: Connection) -> None:
        self._options = conf.libvirt
        self._connection = connection
        self._attempts = Path(conf.state_path) / "live-migrations"

    def run(
        self,
        instance: Instance,
        files: MovingFiles,
        destination: Destination,
        watch: Watch,
        check_storage: Callable[[Destination], None],
    ) -> None:
        """Hand the guest over; see Driver.live_migrate.

        :param check_storage: raises MigrationFailed if disks would be copied that should not, or the other way round.
        """
        look = self._look(instance)
        begun = None
        if not look.is_gone and not look.job:
            with explained(exception.MigrationFailed):
                self._check_not_begun_before(instance, destination)
                check_storage(destination)
                flags = self._flags(files, destination)
                self._note_attempt(instance, destination)
            begun = self._begin(instance, files, destination, flags)
        elif not look.is_gone:
            LOG.info("Found a live migration that runs instance=%s", instance.uuid)
        follower = _Follower(instance, self._connection, watch, post_copy=self._options.live_migration_permit_post_copy)
        failure = follower.follow(begun, partial(self._look, instance)) if begun or look.job else None
        self._settle(instance, destination, follower, failure)

    # -- the note of an attempt --------------------------------------------------------------------------------------

    def _check_not_begun_before(self, instance: Instance, destination: Destination) -> None:
        """Answer once more how the attempt ended, if this move was begun before and no job of it runs any more."""
        try:
            note = json.loads((self._attempts / instance.uuid).read_text())
        except FileNotFoundError:
            return
        if note["move"] != destination["move"]:
            return
        if note.get("aborted"):
            raise exception.MigrationAborted
        unseen = "its live migration ended while the compute service was away; it stayed on its host."
        raise exception.MigrationFailed(reason=note.get("reason", unseen))

    def _note_attempt(self, instance: Instance, destination: Destination, **ended: Any) -> None:
        self._attempts.mkdir(parents=True, exist_ok=True)
        partial_note = self._attempts / f"{instance.uuid}.partial"
        partial_note.write_text(json.dumps({"move": destination["move"], **ended}))
        partial_note.rename(self._attempts / instance.uuid)

    def _forget_attempt(self, instance: Instance) -> None:
        (self._attempts / instance.uuid).unlink(missing_ok=True)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _look(self, instance: Instance) -> _Look:
        def look(conn: VirConnect) -> _Look | None:
            found = guest.find(conn, instance.uuid)
            if found is None:
                return _Look()
            try:
                state, reason = found.domain.state()
                job, progress = _job(found.domain)
            except libvirt.libvirtError as error:
                if error.get_error_code() in (libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_OPERATION_INVALID):
                    return None  # it has just gone, or stopped
                raise
            return _Look(state, reason, job, progress)

        try:
            what = "tell how far the migration is"
            found = self._connection.call(what, look) or self._connection.call(what, look)
        except HypervisorRefused as error:
            raise exception.HypervisorUnavailable(reason=str(error)) from error
        if found is None:
            raise exception.HypervisorUnavailable(reason="libvirt does not tell whether the server runs.")
        return found

    def _begin(self, instance: Instance, files: MovingFiles, destination: Destination, flags: int) -> Begun[None]:
        options = self._options
        adapt = partial(
            destination_xml.for_destination,
            here=files.directory,
            there=Path(destination["directory"]),
            vnc_listen=destination["vnc_listen"],
            bridges=destination["bridges"],
        )

        def migrate(conn: VirConnect) -> None:
            found = guest.find(conn, instance.uuid)
            if found is None:
                raise exception.DomainNotFound(uuid=instance.uuid)
            domain = found.domain
            parameters = {
                libvirt.VIR_MIGRATE_PARAM_DEST_XML: adapt(domain.XMLDesc(_DEFINITION)),
                libvirt.VIR_MIGRATE_PARAM_PERSIST_XML: adapt(
                    domain.XMLDesc(_DEFINITION | libvirt.VIR_DOMAIN_XML_INACTIVE)
                ),
            }
            if destination["inbound_uri"]:
                parameters[libvirt.VIR_MIGRATE_PARAM_URI] = destination["inbound_uri"]
            if options.live_migration_bandwidth:
                parameters[libvirt.VIR_MIGRATE_PARAM_BANDWIDTH] = options.live_migration_bandwidth
            domain.migrateSetMaxDowntime(options.live_migration_downtime, 0)
            domain.migrateToURI3(destination["uri"], parameters, flags)

        LOG.info("Live migration begins instance=%s to=%s flags=%#x", instance.uuid, destination["uri"], flags)
        try:
            return self._connection.begin("migrate the server", migrate)
        except exception.HypervisorUnavailable:
            self._forget_attempt(instance)  # it has not begun
            raise

    def _flags(self, files: MovingFiles, destination: Destination) -> int:
        flags: int = (
            libvirt.VIR_MIGRATE_LIVE
            | libvirt.VIR_MIGRATE_PEER2PEER
            | libvirt.VIR_MIGRATE_PERSIST_DEST
            | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
        )
        if not destination["shared"]:
            flags |= _copying_flag(files, destination)
        for wished, flag in (
            (self._options.live_migration_permit_auto_converge, libvirt.VIR_MIGRATE_AUTO_CONVERGE),
            (self._options.live_migration_permit_post_copy, libvirt.VIR_MIGRATE_POSTCOPY),
            (self._options.live_migration_with_native_tls, libvirt.VIR_MIGRATE_TLS),
            (self._options.live_migration_unsafe, libvirt.VIR_MIGRATE_UNSAFE),
        ):
            flags |= flag if wished else 0
        return flags

    def _settle(
        self,
        instance: Instance,
        destination: Destination,
        follower: _Follower,
        failure: exception.NovaLiteError | None,
    ) -> None:
        """Find out how it ended, and return if the guest has gone.

        :raises MigrationAborted: it has not, by wish.
        :raises MigrationFailed: it has not, for the reason of the failure.
        :raises HypervisorUnavailable: that cannot be told.
        """
        if isinstance(failure, exception.HypervisorUnavailable):
            raise failure
        look = self._look(instance)
        if look.job:
            raise exception.HypervisorUnavailable(reason="a migration of the server goes on.")
        if look.is_gone:
            self._remove_husk(instance)
            self._forget_attempt(instance)
            LOG.info("Live migration done instance=%s", instance.uuid)
            return
        if look.state == libvirt.VIR_DOMAIN_PAUSED and look.reason in _SWITCHED:
            raise exception.HypervisorUnavailable(
                reason="the migration broke after the guest had been switched over; its memory is on both hosts."
            )
        if follower.is_suspended and look.state == libvirt.VIR_DOMAIN_PAUSED:
            self._act(instance, "resume the server", lambda domain: domain.resume())
        reason = _why(failure)
        if look.state == libvirt.VIR_DOMAIN_SHUTOFF:
            reason = "it was powered off while it was moved."
        self._note_attempt(instance, destination, reason=reason, aborted=follower.is_aborted)
        LOG.warning("Live migration ended, the guest stayed instance=%s reason=%s", instance.uuid, reason)
        if follower.is_aborted:
            raise exception.MigrationAborted
        raise exception.MigrationFailed(reason=reason)

    def _remove_husk(self, instance: Instance) -> None:
        """Remove the definition of a guest that was handed over, which libvirt removes itself unless it is stopped."""
        if self._look(instance).state is not None:
            self._act(instance, "remove the server", lambda domain: guest.Guest(domain).remove())

    def _act(self, instance: Instance, what: str, act: Callable[[VirDomain], T]) -> T:
        return self._connection.call(what, partial(_find_and_act, instance, act))


class _Follower:
    """Watches one migration, and does what is wished of it meanwhile."""

    def __init__(self, instance: Instance, connection: Connection, watch: Watch, post_copy: bool) -> None:
        self._instance, self._connection, self._watch, self._post_copy = instance, connection, watch, post_copy
        self._wish = ""
        self.is_aborted = False
        self.is_suspended = False
        self._is_switched = False

    def follow(self, begun: Begun[None] | None, look: Callable[[], _Look]) -> exception.NovaLiteError | None:
        """Return when the migration has ended, with its error.

        :param begun: the call that does it; None if another process made that, and the job alone is to be seen.
        """
        try:
            while not self._has_ended(begun):
                now = look()
                if begun is None and not now.job:
                    return None
                self._wish = self._watch(now.progress) or self._wish
                if now.job:
                    self._fulfil(now)
        except BaseException:
            if begun is not None:
                begun.give_up()
            raise
        if begun is None:
            return None
        try:
            begun.result()
        except exception.NovaLiteError as error:
            return error
        return None

    def _has_ended(self, begun: Begun[None] | None) -> bool:
        if begun is not None:
            return begun.ended(_INTERVAL)
        self._connection.changes.wait(self._connection.changes.count(), _INTERVAL)
        return False

    def _fulfil(self, now: _Look) -> None:
        if self._wish == moves.ABORT and not self.is_aborted:
            self.is_aborted = self._try("end the migration", lambda domain: domain.abortJob())
        elif self._wish == moves.FORCE_COMPLETE and not (self.is_suspended or self._is_switched):
            if self._post_copy:
                self._is_switched = self._try("switch to post-copy", lambda domain: domain.migrateStartPostCopy(0))
                # Before the memory's turn has come, it is tried again.
                if self._is_switched or not now.progress.memory_processed:
                    return
            self.is_suspended = self._try("suspend the server", lambda domain: domain.suspend())

    def _try(self, what: str, act: Callable[[VirDomain], object]) -> bool:
        """Tell whether it could be done: a migration that is just beginning or ending takes no wishes."""
        try:
            self._connection.call(what, partial(_find_and_act, self._instance, act))
        except (HypervisorRefused, exception.DomainNotFound) as error:
            LOG.info("Wish of a live migration not taken instance=%s reason=%s", self._instance.uuid, error)
            return False
        LOG.info("Wish of a live migration fulfilled instance=%s wish=%s", self._instance.uuid, self._wish)
        return True


def _find_and_act(instance: Instance, act: Callable[[VirDomain], T], conn: VirConnect) -> T:
    found = guest.find(conn, instance.uuid)
    if found is None:
        raise exception.DomainNotFound(uuid=instance.uuid)
    return act(found.domain)


def _job(domain: VirDomain) -> tuple[bool, Progress]:
    """Tell whether the guest is on its way out, and how far."""
    if not domain.isActive():
        return False, Progress()
    stats = domain.jobStats(0)
    is_leaving = (
        stats.get("type", libvirt.VIR_DOMAIN_JOB_NONE) != libvirt.VIR_DOMAIN_JOB_NONE
        and stats.get(libvirt.VIR_DOMAIN_JOB_OPERATION) == libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT
    )
    if not is_leaving:
        return False, Progress()
    return True, Progress(
        memory_total=stats.get(libvirt.VIR_DOMAIN_JOB_MEMORY_TOTAL, 0),
        memory_processed=stats.get(libvirt.VIR_DOMAIN_JOB_MEMORY_PROCESSED, 0),
        memory_remaining=stats.get(libvirt.VIR_DOMAIN_JOB_MEMORY_REMAINING, 0),
        disk_total=stats.get(libvirt.VIR_DOMAIN_JOB_DISK_TOTAL, 0),
        disk_processed=stats.get(libvirt.VIR_DOMAIN_JOB_DISK_PROCESSED, 0),
        disk_remaining=stats.get(libvirt.VIR_DOMAIN_JOB_DISK_REMAINING, 0),
    )


def _copying_flag(files: MovingFiles, destination: Destination) -> int:
    """Say how disks are copied: only what differs from a base that both hosts have, or all of them.

    :raises MigrationFailed: the destination's disks have other sizes than those here.
    """
    sizes = files.sizes()
    for name in (ROOT, EPHEMERAL):
        if sizes.get(name, 0) != destination["sizes"].get(name, 0):
            raise exception.MigrationFailed(
                reason=f"its disks are not of the sizes that its flavor has ({name} has {sizes.get(name, 0)} bytes)."
            )
    base = files.base()
    same_base = base is not None and base.name == destination["base"]
    # A disk without a base says nothing of what it does not hold: at the destination the base would shine through.
    flag: int = libvirt.VIR_MIGRATE_NON_SHARED_INC if same_base else libvirt.VIR_MIGRATE_NON_SHARED_DISK
    return flag


def _why(failure: exception.NovaLiteError | None) -> str:
    """Put libvirt's reason for the user."""
    if failure is None:
        return "the hypervisor ended the migration; its log on the host says why."
    if isinstance(failure, HypervisorRefused):
        return f"the hypervisor ended the migration ({without_paths(failure.reason)})."
    return str(failure)

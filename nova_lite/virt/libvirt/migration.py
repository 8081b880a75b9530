# SPDX-License-Identifier: Apache-2.0
"""Moves of servers between libvirt hosts: the section "moves" of the driver's interface.

What a destination tells a source (``Destination``):

    move            names this move; the kept disks and the disks that have come bear it
    host, hostname  the destination's name among the compute services, and in libvirt
    same_host       the destination is the source: a resize in its place
    shared          both see the same files of the instance
    mark            a file that the source sees beside its instances if storage is shared
    directory       the instance's at the destination
    uri             the destination's libvirt for the source's libvirt; inbound_uri for QEMU, if it is not the same way
    transfer_uri    the destination's libvirt for the source's compute service
    uid, gid        whose the disks at the destination are to be
    base            the name of the image in the destination's cache, None if there is none
    wanted          bytes of the disks by the flavor at the destination; a root disk of 0 is as large as its image
    sizes           bytes of the disks that are there already, for a guest that comes running
    vnc_listen      the destination's address for screens, None if it gives guests none
    bridges         the destination's bridges by MAC address

The destination takes disks for shared if they bear another host's name; the source holds that against the mark before
it does anything.
"""

from __future__ import annotations

import json
import logging
import os
import re
import uuid as uuid_module
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import libvirt
from oslo_config import cfg

from nova_lite import exception
from nova_lite.objects import instance as states
from nova_lite.objects.instance import DomainInfo, Instance
from nova_lite.virt.driver import ConfigDrive, Destination, Vif, Watch
from nova_lite.virt.libvirt import domain_xml, guest, moving_files, transfer
from nova_lite.virt.libvirt.connection import Connection, HypervisorRefused, VirConnect
from nova_lite.virt.libvirt.disks import KEPT_SUFFIX, Drive, owner_of
from nova_lite.virt.libvirt.host import HostFacts
from nova_lite.virt.libvirt.live_migration import LiveMigrations
from nova_lite.virt.libvirt.moving_files import ARRIVED, MovingFiles, explained
from nova_lite.virt.libvirt.reasons import why_not_started, without_paths
from nova_lite.virt.libvirt.transfer import Sender, Target
from nova_lite.virt.libvirt.workers import stop_if_given_up

LOG = logging.getLogger(__name__)

T = TypeVar("T")

_DIRECTORY = re.compile(rf"([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})(?:{KEPT_SUFFIX})?")


class Migrations:
    """What either side of a move does on this host.

    :param facts: describes the host; machine gives the settings that shape domains.
    :param power_off: powers a guest off, asking it for so many seconds.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        connection: Connection,
        facts: Callable[[], HostFacts],
        machine: Callable[[], domain_xml.Machine],
        power_off: Callable[[Instance, float], None],
    ) -> None:
        self._conf, self._connection = conf, connection
        self._facts, self._machine, self._power_off = facts, machine, power_off
        self._instances_path = Path(conf.compute.instances_path)
        self._sender = Sender(conf.libvirt.transfer_stall_timeout)
        self._live = LiveMigrations(conf, connection)

    def stop(self) -> None:
        """Let the threads end when they have done what they are at."""
        self._sender.stop()

    # -- the destination ---------------------------------------------------------------------------------------------

    def prepare_destination(
        self, instance: Instance, image: Path | None, vifs: list[Vif], config_drive: ConfigDrive | None, live: bool
    ) -> Destination:
        """See Driver.prepare_destination."""
        same_host = self._domain_is_here(instance)
        if same_host and live:
            raise exception.BuildFailed(reason="it is on the host already.")
        files = self._files(instance)
        with explained(exception.BuildFailed):
            shared = same_host or files.is_shared()
            if shared:
                if not live:
                    moving_files.check_nothing_shrinks(files.sizes(), moving_files.wanted_sizes(instance.flavor))
                self._check_base_is_here(files)
            try:
                if live and not shared:
                    files.make(instance.flavor, image, config_drive.files() if config_drive else None)
                elif not shared:
                    files.prepare()
                return self._describe(instance, files, image, vifs, live, same_host, shared)
            except BaseException:
                if not shared:
                    files.remove()
                raise

    def _describe(
        self,
        instance: Instance,
        files: MovingFiles,
        image: Path | None,
        vifs: list[Vif],
        live: bool,
        same_host: bool,
        shared: bool,
    ) -> Destination:
        move = uuid_module.uuid4().hex
        return {
            **self._addresses(),
            "move": move,
            "same_host": same_host,
            "shared": shared,
            "mark": None if same_host else files.mark(move),
            "directory": str(files.directory),
            "base": image.name if image else None,
            "wanted": moving_files.wanted_sizes(instance.flavor),
            "sizes": files.sizes() if live else {},
            "bridges": {vif.mac.lower(): vif.bridge for vif in vifs if vif.bridge},
        }

    def _addresses(self) -> Destination:
        """Return where and as whom this host can be reached."""
        options, hostname = self._conf.libvirt, self._facts().hostname
        inbound = options.live_migration_inbound_addr
        name = inbound or hostname
        uri = _with_name(options.live_migration_uri, name)
        return {
            "host": self._conf.host,
            "hostname": hostname,
            "uri": uri,
            "inbound_uri": f"tcp://{_bracketed(inbound)}" if inbound else None,
            "transfer_uri": _with_name(options.disk_transfer_uri, name) if options.disk_transfer_uri else uri,
            "uid": os.geteuid(),
            "gid": os.getegid(),
            "vnc_listen": options.vnc_listen if options.vnc_enabled else None,
        }

    def _check_base_is_here(self, files: MovingFiles) -> None:
        base = files.base()
        if base is not None and not base.exists():
            raise exception.BuildFailed(
                reason=f"its disk needs the image {base.name} under a path that this host does not have. With shared "
                "instances, share the image cache as well."
            )

    def finish_migration(
        self,
        instance: Instance,
        destination: Destination,
        image: Path | None,
        vifs: list[Vif],
        config_drive: ConfigDrive | None,
        power_on: bool,
    ) -> None:
        """See Driver.finish_migration."""
        state = self._power_state(instance)
        files = self._files(instance)
        # A domain is defined only when its files are whole; one of a resize in its place is the old one until it runs.
        if state == states.NOSTATE or (destination["same_host"] and state != states.RUNNING):
            if not destination["shared"] and not files.have_arrived(destination["move"]):
                raise exception.MigrationFailed(reason="its disks have not come to the host as a whole.")
            with explained(exception.MigrationFailed):
                drives = files.complete(instance.flavor, image, config_drive.files() if config_drive else None)
            self._define(instance, files, drives, vifs)
        with explained(exception.MigrationFailed):
            files.take_over()
            files.unmark()
            (files.directory / ARRIVED).unlink(missing_ok=True)
        if power_on:
            self._start_or_undefine(instance, keep=destination["same_host"])
        LOG.info("Server has moved here instance=%s from_shared=%s", instance.uuid, destination["shared"])

    def land(self, instance: Instance, vifs: list[Vif], config_drive: ConfigDrive | None) -> None:
        """See Driver.land; libvirt has made the domain persistent already, unless it was stopped in between."""

        def persist(conn: VirConnect) -> bool:
            found = guest.find(conn, instance.uuid)
            if found is None:
                return False
            if not found.domain.isPersistent():
                flags = libvirt.VIR_DOMAIN_XML_SECURE | libvirt.VIR_DOMAIN_XML_INACTIVE
                guest.define(conn, found.domain.XMLDesc(flags))
            return True

        if not self._connection.call("keep the server", persist):
            raise exception.DomainNotFound(uuid=instance.uuid)
        files = self._files(instance)
        with explained(exception.MigrationFailed):
            files.take_over()
            files.unmark()
            files.console_log.touch(mode=0o640)

    def discard(self, instance: Instance, destination: Destination) -> None:
        """See Driver.discard. Without the destination's answer, only what it had made by itself is removed."""
        files = self._files(instance)
        if destination.get("same_host"):
            return
        if destination:
            self._remove_domain(instance)
        elif self._domain_is_here(instance):
            return  # it is no destination then, or has been one for long
        self._connection.call("clear the storage pools", lambda conn: transfer.remove_pool(conn, _pool(instance)))
        with explained(exception.MigrationFailed):
            files.unmark()
            if not destination.get("shared") and files.owner() == self._conf.host:
                files.remove()

    # -- the source --------------------------------------------------------------------------------------------------

    def move_out(self, instance: Instance, destination: Destination, timeout: float) -> None:
        """See Driver.move_out."""
        files = self._files(instance)
        with explained(exception.MigrationFailed):
            self._check_storage(destination)
            moving_files.check_nothing_shrinks(files.sizes(), destination["wanted"])
        try:
            self._power_off(instance, timeout)
            definition = self._definition(instance)
        except exception.DomainNotFound:
            raise exception.MigrationFailed(reason="its domain is not on its host.") from None
        except HypervisorRefused as error:
            raise exception.MigrationFailed(reason=f"it could not be powered off ({without_paths(error.reason)}).")
        with explained(exception.MigrationFailed):
            if destination["shared"]:
                files.keep(destination["move"], definition)
            else:
                self._send(instance, files, destination)

    def _send(self, instance: Instance, files: MovingFiles, destination: Destination) -> None:
        target = Target(
            destination["transfer_uri"],
            destination["hostname"],
            destination["directory"],
            _pool(instance),
            destination["uid"],
            destination["gid"],
        )
        arrived = json.dumps({"move": destination["move"]}).encode()
        try:
            self._sender.send(target, files.to_send(destination["base"]), (ARRIVED, arrived))
        finally:
            files.sent()

    def live_migrate(self, instance: Instance, destination: Destination, watch: Watch) -> None:
        """See Driver.live_migrate."""
        files = self._files(instance)
        self._live.run(instance, files, destination, watch, self._check_storage)
        self._hand_over(files, destination)

    def restore(self, instance: Instance, destination: Destination, power_on: bool) -> None:
        """See Driver.restore."""
        files = self._files(instance)
        definition = files.kept_definition(destination["move"]) if destination.get("shared") else None
        if definition is not None:
            with explained(exception.MigrationFailed):
                self._cut_power(instance)
                files.bring_back(instance.flavor)
                self._call_explained(instance, "restore the server", lambda conn: guest.define(conn, definition))
                files.forget_kept()
        if power_on:
            self._start(instance)
        elif not self._domain_is_here(instance):
            raise exception.DomainNotFound(uuid=instance.uuid)

    def clean(self, instance: Instance, destination: Destination) -> None:
        """See Driver.clean."""
        files = self._files(instance)
        with explained(exception.MigrationFailed):
            if destination.get("same_host"):
                files.forget_kept()
                return
            self._remove_domain(instance)
            files.forget_kept()
            self._hand_over(files, destination)
            if not destination.get("shared"):
                files.remove()

    def _hand_over(self, files: MovingFiles, destination: Destination) -> None:
        """Let shared files bear the destination's name; it sees to that itself, unless it fails before."""
        if destination.get("shared") and "host" in destination and files.owner() == self._conf.host:
            with explained(exception.MigrationFailed):
                files.hand_over(destination["host"])

    def _check_storage(self, destination: Destination) -> None:
        """Make sure that storage is shared if, and only if, the destination takes it to be."""
        if destination["same_host"]:
            if destination["host"] != self._conf.host:
                raise exception.MigrationFailed(
                    reason=f"host {destination['host']} has not yet removed what the server left there when it was "
                    "moved away. Try again later."
                )
            return
        seen = (self._instances_path / destination["mark"]).exists()
        if destination["shared"] and not seen:
            raise exception.MigrationFailed(
                reason=f"host {destination['host']} has disks of it, which are not those that it runs with. Ask the "
                "operator to look at them."
            )
        if seen and not destination["shared"]:
            raise exception.MigrationFailed(
                reason=f"host {destination['host']} shares its storage and does not see its disks there."
            )

    # -- after the death of a host -----------------------------------------------------------------------------------

    def has_disks(self, instance: Instance) -> bool:
        """See Driver.has_disks. Disks that bear this host's name are an old remain, and not the server's."""
        files = self._files(instance)
        try:
            return files.is_shared() and not self._domain_is_here(instance)
        except exception.BuildFailed:
            return False

    def adopt(self, instance: Instance, vifs: list[Vif], config_drive: ConfigDrive | None, power_on: bool) -> None:
        """See Driver.adopt."""
        files = self._files(instance)
        if not self._domain_is_here(instance):
            with explained(exception.BuildFailed):
                if not files.is_shared():
                    raise exception.BuildFailed(reason="its disks are not on storage that the host shares.")
                self._check_base_is_here(files)
                drives = files.found(config_drive.files() if config_drive else None)
            try:
                self._define(instance, files, drives, vifs)
                if power_on:
                    self._start_or_undefine(instance)
            except exception.MigrationFailed as error:
                raise exception.BuildFailed(str(error)) from error
        elif power_on:
            self._start(instance)
        with explained(exception.BuildFailed):
            files.take_over()

    def remains(self) -> list[DomainInfo]:
        """See Driver.remains; files that bear another host's name are of a server that lives there."""
        node = self._facts().hostname
        present = set(
            self._connection.call("list the domains", lambda conn: [found.uuid for found in guest.find_all(conn)])
        )
        return [DomainInfo(uuid, node, states.NOSTATE) for uuid in sorted(self._owned() - present)]

    def _owned(self) -> set[str]:
        """Return the uuids of the instances of which there are files in this host's name."""
        if not self._instances_path.is_dir():
            return set()
        owned = set()
        for path in self._instances_path.iterdir():
            found = _DIRECTORY.fullmatch(path.name)
            if found and owner_of(path) == self._conf.host:
                owned.add(found[1])
        return owned

    # -- parts -------------------------------------------------------------------------------------------------------

    def _files(self, instance: Instance) -> MovingFiles:
        return MovingFiles(self._instances_path, instance.uuid, self._conf.host)

    def _power_state(self, instance: Instance) -> int:
        def look(conn: VirConnect) -> int:
            found = guest.find(conn, instance.uuid)
            return states.NOSTATE if found is None else found.power_state()

        return self._connection.call("tell the server's power state", look)

    def _domain_is_here(self, instance: Instance) -> bool:
        return self._connection.call("look for the server", lambda conn: guest.find(conn, instance.uuid) is not None)

    def _definition(self, instance: Instance) -> str:
        def describe(conn: VirConnect) -> str | None:
            found = guest.find(conn, instance.uuid)
            if found is None:
                return None
            text: str = found.domain.XMLDesc(libvirt.VIR_DOMAIN_XML_SECURE | libvirt.VIR_DOMAIN_XML_INACTIVE)
            return text

        definition = self._connection.call("describe the server", describe)
        if definition is None:
            raise exception.DomainNotFound(uuid=instance.uuid)
        return definition

    def _define(self, instance: Instance, files: MovingFiles, drives: list[Drive], vifs: list[Vif]) -> None:
        try:
            xml = domain_xml.domain_xml(instance, self._machine(), drives, vifs, files.console_log)
        except exception.BuildFailed as error:
            raise exception.MigrationFailed(reason=str(error)) from error
        self._call_explained(instance, "define the server", lambda conn: guest.define(conn, xml))

    def _start(self, instance: Instance) -> None:
        def start(conn: VirConnect) -> bool:
            found = guest.find(conn, instance.uuid)
            if found is None:
                return False
            stop_if_given_up()
            found.start()
            return True

        if not self._call_explained(instance, "start the server", start, self._conf.libvirt.start_timeout):
            raise exception.DomainNotFound(uuid=instance.uuid)

    def _start_or_undefine(self, instance: Instance, keep: bool = False) -> None:
        try:
            self._start(instance)
        except exception.MigrationFailed:
            if not keep:
                self._remove_domain(instance)
            raise

    def _cut_power(self, instance: Instance) -> None:
        def cut(conn: VirConnect) -> None:
            found = guest.find(conn, instance.uuid)
            if found is not None:
                found.cut_power()

        self._connection.call("cut the server's power", cut)

    def _remove_domain(self, instance: Instance) -> None:
        def remove(conn: VirConnect) -> None:
            found = guest.find(conn, instance.uuid)
            if found is not None:
                found.remove()

        self._connection.call("remove the server", remove)

    def _call_explained(
        self, instance: Instance, what: str, function: Callable[[VirConnect], T], timeout: float | None = None
    ) -> T:
        try:
            return self._connection.call(what, function, timeout)
        except HypervisorRefused as error:
            LOG.error("Move failed at the hypervisor instance=%s reason=%s", instance.uuid, error.reason)
            raise exception.MigrationFailed(reason=why_not_started(error.reason, instance)) from error


def _pool(instance: Instance) -> str:
    """Return the name of the storage pool that the instance's disks come through."""
    return f"nova-lite-{instance.uuid}"


def _with_name(uri: str, name: str) -> str:
    return uri.replace("%s", _bracketed(name))


def _bracketed(name: str) -> str:
    """Return the host's name as URIs have it: addresses of IPv6 in brackets."""
    return f"[{name}]" if ":" in name and not name.startswith("[") else name

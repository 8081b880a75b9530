# SPDX-License-Identifier: Apache-2.0
"""The libvirt driver: the interface of virt/driver.py in terms of domains, files and waiting for guests.

A domain is defined only when all its files are whole. So a domain that exists can be started as it is, and files
without a domain are what is left of a spawn that was interrupted, and are made anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from oslo_config import cfg

from nova_lite import exception
from nova_lite.objects import instance as states
from nova_lite.objects.diagnostics import Diagnostics, Screen
from nova_lite.objects.instance import DomainInfo, Instance
from nova_lite.objects.node import NodeInventory
from nova_lite.objects.resources import Resources
from nova_lite.virt import identity
from nova_lite.virt.driver import ConfigDrive, Destination, Driver, EventSink, Vif, Watch
from nova_lite.virt.libvirt import disks, domain_xml, guest, host, rescue, snapshot, statistics
from nova_lite.virt.libvirt.connection import Connection, HypervisorRefused, Limits, VirConnect
from nova_lite.virt.libvirt.disks import InstanceFiles
from nova_lite.virt.libvirt.guest import Guest
from nova_lite.virt.libvirt.host import HostFacts
from nova_lite.virt.libvirt.migration import Migrations
from nova_lite.virt.libvirt.reasons import why_not_started
from nova_lite.virt.libvirt.rescue import Rescue, own_definition
from nova_lite.virt.libvirt.workers import stop_if_given_up

LOG = logging.getLogger(__name__)

T = TypeVar("T")

HYPERVISOR_TYPE = "QEMU"
MAX_CONSOLE_BYTES = 100 << 10  # of a console log that are shown; the answer crosses the bus

# A guest that is just booting does not listen to its power button: press it again after so many seconds.
_PRESS_INTERVAL = 10.0
# Look at a guest at least so often while waiting for it, lest a lost event cost the whole timeout. In seconds.
_LOOK_INTERVAL = 1.0


class LibvirtDriver(Driver):
    """Drives the one libvirt daemon of [libvirt] connection_uri, which is one node."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._check_settings()
        options = conf.libvirt
        self._instances_path = Path(conf.compute.instances_path)
        self._facts: HostFacts | None = None
        self._connection = Connection(
            options.connection_uri,
            Limits(
                call_timeout=options.call_timeout,
                connect_timeout=options.connect_timeout,
                reconnect_interval=options.reconnect_interval,
                keepalive_interval=options.keepalive_interval,
                keepalive_count=options.keepalive_count,
                workers=options.worker_threads,
            ),
            is_ours=domain_xml.is_our_name,
            list_ours=lambda conn: [found.uuid for found in guest.find_all(conn)],
        )
        self._migrations = Migrations(conf, self._connection, self._host_facts, self._machine, self.power_off)

    def start(self, events: EventSink) -> None:
        self._connection.start(events)

    def stop(self) -> None:
        self._connection.stop()
        self._migrations.stop()

    def inventory(self) -> list[NodeInventory]:
        facts = self._read_facts()
        options = self._conf.compute
        return [
            NodeInventory(
                uuid=identity.node_uuid(Path(self._conf.state_path)),
                host=self._conf.host,
                node=facts.hostname,
                total=Resources(facts.vcpus, facts.memory_mb, disks.disk_size_gb(self._instances_path)),
                reserved=Resources(
                    options.reserved_host_cpus, options.reserved_host_memory_mb, options.reserved_host_disk_gb
                ),
                cpu_allocation_ratio=options.cpu_allocation_ratio,
                ram_allocation_ratio=options.ram_allocation_ratio,
                disk_allocation_ratio=options.disk_allocation_ratio,
                hypervisor_type=HYPERVISOR_TYPE,
                hypervisor_version=facts.version,
                host_ip=self._conf.libvirt.host_ip,
                cpu_info=facts.cpu_info,
                architectures=facts.architectures,
            )
        ]

    def domains(self) -> list[DomainInfo]:
        node = self._host_facts().hostname
        found = self._connection.call(
            "list the domains",
            lambda conn: [DomainInfo(found.uuid, node, found.power_state()) for found in guest.find_all(conn)],
        )
        return [domain for domain in found if domain.power_state != states.NOSTATE]

    def spawn(self, instance: Instance, image: Path | None, vifs: list[Vif], config_drive: ConfigDrive | None) -> None:
        """Make files, domain and guest, each only if it is not there.

        A libvirtd that stops answering in between (HypervisorUnavailable) may have done its part or not; either a
        repetition or a destroy, when it is back, settles that.
        """
        if self.power_state(instance) != states.NOSTATE:
            self.power_on(instance)
            return
        files, machine = self._files(instance), self._machine()
        try:
            drives = files.make(instance.flavor, image, config_drive.files() if config_drive else None)
            xml = domain_xml.domain_xml(instance, machine, drives, vifs, files.console_log)
            self._define_and_start(xml)
        except HypervisorRefused as error:
            LOG.error("Guest not started instance=%s reason=%s", instance.uuid, error.reason)
            self.destroy(instance)
            raise exception.BuildFailed(reason=why_not_started(error.reason, instance)) from error
        except exception.BuildFailed:
            self.destroy(instance)
            raise
        LOG.info("Guest started instance=%s flavor=%s", instance.uuid, instance.flavor.name)

    def destroy(self, instance: Instance) -> None:
        def remove(conn: VirConnect) -> None:
            found = guest.find(conn, instance.uuid)
            if found is not None:
                found.remove()

        self._connection.call("remove the server", remove)
        self._files(instance).remove()
        LOG.info("Guest removed instance=%s", instance.uuid)

    def power_state(self, instance: Instance) -> int:
        def look(conn: VirConnect) -> int:
            found = guest.find(conn, instance.uuid)
            return states.NOSTATE if found is None else found.power_state()

        return self._connection.call("tell the server's power state", look)

    def power_on(self, instance: Instance) -> None:
        self._on_guest(instance, "start the server", Guest.start, self._conf.libvirt.start_timeout)

    def power_off(self, instance: Instance, timeout: float) -> None:
        if not self._shut_down(instance, timeout):
            self._on_guest(instance, "cut the server's power", Guest.cut_power)

    def reboot(self, instance: Instance, hard: bool, timeout: float) -> None:
        """Give the guest a new process either way, rather than a reset: a hung QEMU is cured as well."""
        self.power_off(instance, 0 if hard else timeout)
        self.power_on(instance)

    def pause(self, instance: Instance) -> None:
        self._on_guest(instance, "pause the server", Guest.pause)

    def unpause(self, instance: Instance) -> None:
        self._on_guest(instance, "unpause the server", Guest.unpause)

    def suspend(self, instance: Instance) -> None:
        self._on_guest(instance, "suspend the server", Guest.save, self._conf.libvirt.save_timeout)

    def resume(self, instance: Instance) -> None:
        self._on_guest(instance, "resume the server", Guest.wake, self._conf.libvirt.save_timeout)

    def rescue(self, instance: Instance, image: Path | None, timeout: float) -> None:
        if image is None:
            raise exception.RescueFailed(reason="there is no image to boot from.")
        rescue.begin(
            Rescue(self._files(instance).directory),
            image,
            look=lambda: self._on_guest(instance, "look at the server", lambda g: (g.power_state(), own_definition(g))),
            power_off=lambda: self.power_off(instance, timeout),
            start=self._define_and_start,
        )
        LOG.info("Guest rescued instance=%s", instance.uuid)

    def unrescue(self, instance: Instance) -> None:
        kept = Rescue(self._files(instance).directory)
        own = kept.definition()
        if own is None:
            self.power_on(instance)
            return
        self.power_off(instance, 0)
        self._define_and_start(own)
        kept.remove()
        LOG.info("Guest unrescued instance=%s", instance.uuid)

    def snapshot(self, instance: Instance, destination: Path, given_up: Callable[[], bool]) -> None:
        disk = self._files(instance).directory / "disk"
        copier = snapshot.Copier(self._connection, self._conf.libvirt.snapshot_timeout)
        copier.copy(instance.uuid, disk, destination, given_up)
        LOG.info("Disk copied instance=%s bytes=%d", instance.uuid, destination.stat().st_size)

    def console_output(self, instance: Instance, lines: int | None) -> str:
        """Read the file alone: a console can be looked at while the hypervisor is away."""
        files = self._files(instance)
        if not files.directory.is_dir():
            raise exception.DomainNotFound(uuid=instance.uuid)
        return files.read_console(lines, MAX_CONSOLE_BYTES)

    def diagnostics(self, instance: Instance) -> Diagnostics:
        virt_type = self._conf.libvirt.virt_type

        def read(conn: VirConnect) -> Diagnostics:
            return statistics.read(conn, _found(conn, instance), virt_type)

        return self._connection.call("measure the server", read)

    def screen(self, instance: Instance) -> Screen | None:
        def read(conn: VirConnect) -> Screen | None:
            return statistics.screen(_found(conn, instance).domain.XMLDesc(0), self._conf.libvirt.host_ip)

        return self._connection.call("find the server's screen", read)

    # -- moves: see migration.py -------------------------------------------------------------------------------------

    def prepare_destination(
        self, instance: Instance, image: Path | None, vifs: list[Vif], config_drive: ConfigDrive | None, live: bool
    ) -> Destination:
        return self._migrations.prepare_destination(instance, image, vifs, config_drive, live)

    def move_out(self, instance: Instance, destination: Destination, timeout: float) -> None:
        self._migrations.move_out(instance, destination, timeout)

    def finish_migration(
        self,
        instance: Instance,
        destination: Destination,
        image: Path | None,
        vifs: list[Vif],
        config_drive: ConfigDrive | None,
        power_on: bool,
    ) -> None:
        self._migrations.finish_migration(instance, destination, image, vifs, config_drive, power_on)

    def restore(self, instance: Instance, destination: Destination, power_on: bool) -> None:
        self._migrations.restore(instance, destination, power_on)

    def discard(self, instance: Instance, destination: Destination) -> None:
        self._migrations.discard(instance, destination)

    def clean(self, instance: Instance, destination: Destination) -> None:
        self._migrations.clean(instance, destination)

    def live_migrate(self, instance: Instance, destination: Destination, watch: Watch) -> None:
        self._migrations.live_migrate(instance, destination, watch)

    def land(self, instance: Instance, vifs: list[Vif], config_drive: ConfigDrive | None) -> None:
        self._migrations.land(instance, vifs, config_drive)

    def has_disks(self, instance: Instance) -> bool:
        return self._migrations.has_disks(instance)

    def adopt(self, instance: Instance, vifs: list[Vif], config_drive: ConfigDrive | None, power_on: bool) -> None:
        self._migrations.adopt(instance, vifs, config_drive, power_on)

    def remains(self) -> list[DomainInfo]:
        return self._migrations.remains()

    # -- parts -------------------------------------------------------------------------------------------------------

    def _define_and_start(self, xml: str) -> None:
        def define_and_start(conn: VirConnect) -> None:
            found = guest.define(conn, xml)
            stop_if_given_up()
            found.start()

        self._connection.call("start the server", define_and_start, self._conf.libvirt.start_timeout)

    def _shut_down(self, instance: Instance, timeout: float) -> bool:
        """Ask the guest to power off and wait; tell whether it did."""
        deadline = time.monotonic() + timeout
        press_at = time.monotonic()
        while True:
            seen = self._connection.changes.count()
            state = self.power_state(instance)
            now = time.monotonic()
            if state == states.NOSTATE:
                raise exception.DomainNotFound(uuid=instance.uuid)
            if state == states.SHUTDOWN:
                return True
            if now >= deadline or state != states.RUNNING:
                return False  # only a guest that runs can react
            if now >= press_at:
                if not self._press_power_button(instance, deadline - now):
                    return False
                press_at = now + _PRESS_INTERVAL
            self._connection.changes.wait(seen, min(_LOOK_INTERVAL, deadline - now))

    def _press_power_button(self, instance: Instance, timeout: float) -> bool:
        """Tell whether libvirt passed it on: a QEMU that hangs takes nothing, and its power can still be cut."""
        seconds = min(timeout, self._conf.libvirt.call_timeout)
        try:
            self._on_guest(instance, "ask the server to power off", Guest.press_power_button, seconds)
        except (exception.HypervisorUnavailable, HypervisorRefused) as error:
            LOG.warning("Guest cannot be asked to power off instance=%s reason=%s", instance.uuid, error)
            return False
        return True

    def _on_guest(self, instance: Instance, what: str, act: Callable[[Guest], T], timeout: float | None = None) -> T:
        def find_and_act(conn: VirConnect) -> T:
            found = _found(conn, instance)
            stop_if_given_up()
            return act(found)

        return self._connection.call(what, find_and_act, timeout)

    def _files(self, instance: Instance) -> InstanceFiles:
        return InstanceFiles(self._instances_path, instance.uuid, self._conf.host)

    def _read_facts(self) -> HostFacts:
        virt_type = self._conf.libvirt.virt_type
        self._facts = self._connection.call("describe the host", lambda conn: host.read_facts(conn, virt_type))
        return self._facts

    def _host_facts(self) -> HostFacts:
        return self._facts or self._read_facts()

    def _machine(self) -> domain_xml.Machine:
        options = self._conf.libvirt
        return domain_xml.Machine(
            virt_type=options.virt_type,
            arch=self._host_facts().arch,
            cpu_mode=options.cpu_mode,
            cpu_model=options.cpu_model,
            machine_type=options.machine_type,
            disk_cache=options.disk_cache,
            tcg_cache_mb=options.tcg_cache_mb,
            vnc_listen=options.vnc_listen if options.vnc_enabled else None,
        )

    def _check_settings(self) -> None:
        options = self._conf.libvirt
        if options.virt_type == "qemu" and options.cpu_mode in ("host-passthrough", "host-model"):
            raise cfg.ConfigFileValueError(
                f"[libvirt] cpu_mode={options.cpu_mode} needs virt_type=kvm: an emulated CPU is not the host's."
            )
        if options.cpu_mode == "custom" and not options.cpu_model:
            raise cfg.ConfigFileValueError("[libvirt] cpu_mode=custom needs cpu_model; see 'virsh cpu-models'.")


def _found(conn: VirConnect, instance: Instance) -> Guest:
    """Return the guest of an instance.

    :raises DomainNotFound: there is none.
    """
    found = guest.find(conn, instance.uuid)
    if found is None:
        raise exception.DomainNotFound(uuid=instance.uuid)
    return found

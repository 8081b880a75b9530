# SPDX-License-Identifier: Apache-2.0
"""The fake hypervisor: no guests, but all the rules of one.

It plays as many hosts as are configured, each a compute service of its own, with sizes, delays and faults that can be
set; it keeps its domains on disk, so that they outlive the process as real ones do. Faults and delays by host and
action, or by the name of a server and action, are read from a control file before each action:

    {"host1": {"spawn": {"fail": "no space left", "delay": 2.0}}, "*": {"destroy": {"hang": true}}}

``fail`` raises with that reason, ``delay`` waits so many seconds first, ``hang`` makes the hypervisor unavailable.
What is not done to a server ("domains", "check") fails on the first host of the process. ``seconds`` is how long a
"live_migrate" takes, instead of [fake] live_migration_seconds.

Hosts whose processes share [fake] domains_path can move servers to each other. A server's disks are an empty file of
their own, so that what a move leaves behind can be seen; with [fake] shared_disks, all hosts see the same one.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from oslo_config import cfg
from oslo_log import log

from nova_lite import exception
from nova_lite.objects import instance as states
from nova_lite.objects.diagnostics import Diagnostics, DiskCounts, NicCounts, Screen
from nova_lite.objects.instance import DomainInfo, Instance
from nova_lite.objects.move import ABORT, FORCE_COMPLETE, Progress
from nova_lite.objects.node import NodeInventory
from nova_lite.objects.resources import Resources
from nova_lite.virt import fake_disk
from nova_lite.virt.driver import ConfigDrive, Destination, Driver, EventSink, Vif, Watch
from nova_lite.virt.identity import derived_uuid

LOG = log.getLogger(__name__)


class FakeDriver(Driver):
    """Many nodes in one process; a domain is a small JSON file in its node's directory.

    While a server moves, two nodes may have a domain of it, so a domain is known by its node and its uuid.
    """

    needs_image: ClassVar[bool] = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._options = conf.fake
        self._state_path = Path(conf.state_path)
        self._root = Path(conf.fake.domains_path)
        self._hosts = list(expand(conf.fake.hosts))
        self._events: EventSink = lambda _uuid: None
        self._stopping = threading.Event()
        self._domains: dict[tuple[str, str], DomainInfo] = {}
        self._lock = threading.Lock()

    def start(self, events: EventSink) -> None:
        self._events = events
        for host in self._hosts:
            (self._root / host).mkdir(parents=True, exist_ok=True)
            for path in (self._root / host).glob("*.json"):
                domain = DomainInfo(**json.loads(path.read_text()))
                self._domains[domain.node, domain.uuid] = domain

    def stop(self) -> None:
        self._stopping.set()

    def inventory(self) -> list[NodeInventory]:
        return [self._inventory(host) for host in self._hosts]

    def _inventory(self, host: str) -> NodeInventory:
        size = self._options.sizes.get(host)
        default = (self._options.vcpus, self._options.memory_mb, self._options.disk_gb)
        vcpus, memory_mb, disk_gb = (int(part) for part in size.split("/")) if size else default
        return NodeInventory(
            uuid=derived_uuid(self._state_path, host),
            host=host,
            node=host,
            total=Resources(vcpus, memory_mb, disk_gb),
            hypervisor_type="fake",
            hypervisor_version=1000,
            cpu_info={
                "arch": "x86_64",
                "model": "fake",
                "vendor": "fake",
                "features": [],
                "topology": {"cores": vcpus, "threads": 1, "sockets": 1},
            },
            architectures=("x86_64", "i686"),
        )

    def domains(self) -> list[DomainInfo]:
        self._act(self._hosts[0], "domains")
        self._find_arrivals()
        with self._lock:
            return list(self._domains.values())

    def domains_of(self, uuid: str) -> list[DomainInfo]:
        with self._lock:
            return [self._domains[host, uuid] for host in self._hosts if (host, uuid) in self._domains]

    def check(self) -> None:
        self._act(self._hosts[0], "check")

    def spawn(self, instance: Instance, image: Path | None, vifs: list[Vif], config_drive: ConfigDrive | None) -> None:
        if instance.node not in self._hosts:
            raise exception.BuildFailed(reason=f"this service has no node {instance.node}")
        try:
            self._act(instance.node, "spawn", self._options.spawn_delay, instance.name)
        except exception.HypervisorUnavailable as error:
            raise exception.BuildFailed(reason=str(error)) from error
        if config_drive is not None:
            config_drive.files()
        self._disk(instance).touch()
        self._put(DomainInfo(instance.uuid, instance.node, states.RUNNING))

    def destroy(self, instance: Instance) -> None:
        self._act(instance.node, "destroy", self._options.destroy_delay, instance.name)
        self._remove(instance)
        self._disk(instance).unlink(missing_ok=True)

    def power_state(self, instance: Instance) -> int:
        domain = self._find(instance)
        return domain.power_state if domain else states.NOSTATE

    def power_on(self, instance: Instance) -> None:
        self._change(instance, "power_on", states.RUNNING)

    def power_off(self, instance: Instance, timeout: float) -> None:
        self._change(instance, "power_off", states.SHUTDOWN)

    def reboot(self, instance: Instance, hard: bool, timeout: float) -> None:
        self._change(instance, "reboot", states.RUNNING)

    def pause(self, instance: Instance) -> None:
        self._change(instance, "pause", states.POWER_PAUSED)

    def unpause(self, instance: Instance) -> None:
        self._change(instance, "unpause", states.RUNNING)

    def suspend(self, instance: Instance) -> None:
        self._change(instance, "suspend", states.POWER_SUSPENDED)

    def resume(self, instance: Instance) -> None:
        self._change(instance, "resume", states.RUNNING)

    def rescue(self, instance: Instance, image: Path | None, timeout: float) -> None:
        self._change(instance, "rescue", states.RUNNING)

    def unrescue(self, instance: Instance) -> None:
        self._change(instance, "unrescue", states.RUNNING)

    def snapshot(self, instance: Instance, destination: Path, given_up: Callable[[], bool]) -> None:
        self._act(instance.node, "snapshot", self._options.power_delay, instance.name)
        if self._find(instance) is None:
            raise exception.DomainNotFound(uuid=instance.uuid)
        if given_up():
            raise exception.SnapshotFailed(reason="the server is being deleted.")
        fake_disk.write(destination, instance.flavor.root_gb << 30)

    def console_output(self, instance: Instance, lines: int | None) -> str:
        self._act(instance.node, "console_output", server=instance.name)
        if self._find(instance) is None:
            raise exception.DomainNotFound(uuid=instance.uuid)
        text = [f"fake console of {instance.name}", "FAKE CONSOLE OUTPUT", "ANOTHER", "LAST LINE"]
        return "\n".join(text if lines is None else text[max(0, len(text) - lines) :])

    def diagnostics(self, instance: Instance) -> Diagnostics:
        """Tell of a guest that has done nothing since it was started: no counter but those of its size."""
        self._act(instance.node, "diagnostics", server=instance.name)
        domain = self._find(instance)
        if domain is None:
            raise exception.DomainNotFound(uuid=instance.uuid)
        memory = instance.flavor.memory_mb << 10
        return Diagnostics(
            power_state=domain.power_state,
            driver="fake",
            hypervisor="fake",
            cpu_times=(0,) * instance.flavor.vcpus,
            disks=(DiskCounts("vda"),),
            nics=tuple(NicCounts(f"tap{port.id[:11]}", port.mac) for port in instance.ports),
            memory_maximum=memory,
            memory_used=memory,
        )

    def screen(self, instance: Instance) -> Screen | None:
        """Name a place where nobody serves: a port that is kept for what no machine runs any more (RFC 1078)."""
        self._act(instance.node, "screen", server=instance.name)
        domain = self._find(instance)
        if domain is None:
            raise exception.DomainNotFound(uuid=instance.uuid)
        powered = domain.power_state in (states.RUNNING, states.POWER_PAUSED)
        return Screen("127.0.0.1", 1) if powered else None

    def guest_powers_off(self, uuid: str) -> None:
        """Let the guest power itself off, as if a user had typed it inside; the event follows."""
        for domain in self.domains_of(uuid):
            self._put(DomainInfo(domain.uuid, domain.node, states.SHUTDOWN))
            self._events(uuid)

    # -- moves -------------------------------------------------------------------------------------------------------

    def prepare_destination(
        self, instance: Instance, image: Path | None, vifs: list[Vif], config_drive: ConfigDrive | None, live: bool
    ) -> Destination:
        self._act(instance.node, "prepare_destination", server=instance.name)
        same_host = self._find(instance) is not None
        shared = same_host or self._options.shared_disks
        self._disk(instance).touch()
        return {"same_host": same_host, "shared": shared, "node": instance.node}

    def move_out(self, instance: Instance, destination: Destination, timeout: float) -> None:
        self._act(instance.node, "move_out", server=instance.name)
        if self._find(instance) is None:
            raise exception.DomainNotFound(uuid=instance.uuid)
        self._put(DomainInfo(instance.uuid, instance.node, states.SHUTDOWN))

    def finish_migration(
        self,
        instance: Instance,
        destination: Destination,
        image: Path | None,
        vifs: list[Vif],
        config_drive: ConfigDrive | None,
        power_on: bool,
    ) -> None:
        self._act(instance.node, "finish_migration", self._options.spawn_delay, instance.name)
        self._define(instance, power_on)

    def restore(self, instance: Instance, destination: Destination, power_on: bool) -> None:
        self._act(instance.node, "restore", server=instance.name)
        self._define(instance, power_on)

    def discard(self, instance: Instance, destination: Destination) -> None:
        self._act(instance.node, "discard", server=instance.name)
        self._leave(instance, destination)

    def clean(self, instance: Instance, destination: Destination) -> None:
        self._act(instance.node, "clean", server=instance.name)
        self._leave(instance, destination)

    def live_migrate(self, instance: Instance, destination: Destination, watch: Watch) -> None:
        self._act(instance.node, "live_migrate", server=instance.name)
        domain = self._find(instance)
        if domain is None:
            return
        total = instance.flavor.memory_mb << 20
        told = self._faults("live_migrate", "*", instance.node, instance.name)
        began, ends = time.monotonic(), float(told.get("seconds", self._options.live_migration_seconds))
        while (elapsed := time.monotonic() - began) < ends:
            done = int(total * elapsed / ends)
            wish = watch(Progress(total, done, total - done))
            if wish == ABORT:
                raise exception.MigrationAborted
            if wish == FORCE_COMPLETE:
                break
            if self._stopping.wait(min(0.2, ends / 5)):
                raise exception.HypervisorUnavailable(reason="this process ends")
        watch(Progress(total, total, 0))
        self._act(instance.node, "live_migrate_end", server=instance.name)
        self._put(DomainInfo(instance.uuid, str(destination["node"]), domain.power_state), here=False)
        self._remove(instance)

    def land(self, instance: Instance, vifs: list[Vif], config_drive: ConfigDrive | None) -> None:
        self._act(instance.node, "land", server=instance.name)
        if self._find(instance) is None:
            raise exception.DomainNotFound(uuid=instance.uuid)

    def has_disks(self, instance: Instance) -> bool:
        return self._options.shared_disks and self._disk(instance).exists()

    def adopt(self, instance: Instance, vifs: list[Vif], config_drive: ConfigDrive | None, power_on: bool) -> None:
        self._act(instance.node, "adopt", self._options.spawn_delay, instance.name)
        self._define(instance, power_on)

    def remains(self) -> list[DomainInfo]:
        if self._options.shared_disks:
            return []
        found = ((path.stem, host) for host in self._hosts for path in (self._root / host).glob("*.disk"))
        with self._lock:
            return [DomainInfo(uuid, host, states.NOSTATE) for uuid, host in found if (host, uuid) not in self._domains]

    def _define(self, instance: Instance, power_on: bool) -> None:
        self._disk(instance).touch()
        self._put(DomainInfo(instance.uuid, instance.node, states.RUNNING if power_on else states.SHUTDOWN))

    def _leave(self, instance: Instance, destination: Destination) -> None:
        if destination.get("same_host"):
            return
        self._remove(instance)
        if not destination.get("shared"):
            self._disk(instance).unlink(missing_ok=True)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _change(self, instance: Instance, action: str, power_state: int) -> None:
        self._act(instance.node, action, self._options.power_delay, instance.name)
        if self._find(instance) is None:
            raise exception.DomainNotFound(uuid=instance.uuid)
        self._put(DomainInfo(instance.uuid, instance.node, power_state))
        self._events(instance.uuid)

    def _find_arrivals(self) -> None:
        """Look for domains that have come from other processes."""
        for host in self._hosts:
            for path in (self._root / host).glob("*.json"):
                if (host, path.stem) in self._domains:
                    continue
                with suppress(FileNotFoundError):  # it has just been removed
                    domain = DomainInfo(**json.loads(path.read_text()))
                    with self._lock:
                        if path.exists():
                            self._domains.setdefault((host, domain.uuid), domain)

    def _find(self, instance: Instance) -> DomainInfo | None:
        """Return the domain; one that has come from another process is known by its file alone."""
        with self._lock:
            found = self._domains.get((instance.node, instance.uuid))
        if found is None and instance.node in self._hosts:
            try:
                found = DomainInfo(**json.loads((self._root / instance.node / f"{instance.uuid}.json").read_text()))
            except FileNotFoundError:
                return None
            with self._lock:
                self._domains[found.node, found.uuid] = found
        return found

    def _remove(self, instance: Instance) -> None:
        with self._lock:
            self._domains.pop((instance.node, instance.uuid), None)
            (self._root / instance.node / f"{instance.uuid}.json").unlink(missing_ok=True)

    def _disk(self, instance: Instance) -> Path:
        shared = self._root / "shared"
        if self._options.shared_disks:
            shared.mkdir(parents=True, exist_ok=True)
        return (shared if self._options.shared_disks else self._root / instance.node) / f"{instance.uuid}.disk"

    def _put(self, domain: DomainInfo, here: bool = True) -> None:
        """Write a domain; one that is not here belongs to another process, or to another node of this one."""
        path = self._path(domain)
        temporary = path.with_suffix(f".{threading.get_ident()}")
        temporary.write_text(json.dumps(asdict(domain)))
        os.replace(temporary, path)
        if here or domain.node in self._hosts:
            with self._lock:
                self._domains[domain.node, domain.uuid] = domain

    def _path(self, domain: DomainInfo) -> Path:
        return self._root / domain.node / f"{domain.uuid}.json"

    def _act(self, host: str, action: str, delay: float = 0.0, server: str = "") -> None:
        """Wait and fail as configured for an action on a host, or on a server of that name."""
        faults = self._faults(action, "*", host, server)
        delay = float(faults.get("delay", delay))
        if delay:
            self._stopping.wait(delay)
        if faults.get("hang"):
            raise exception.HypervisorUnavailable(reason=f"the fake hypervisor of {host} hangs, as it was told to")
        if faults.get("fail"):
            raise exception.BuildFailed(str(faults["fail"]))

    def _faults(self, action: str, *names: str) -> dict[str, Any]:
        path = self._options.control_file
        if not path:
            return {}
        try:
            control = json.loads(Path(path).read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            LOG.warning("control file ignored path=%s reason=%s", path, error)
            return {}
        return {key: value for name in names for key, value in control.get(name, {}).get(action, {}).items()}


def expand(patterns: list[str]) -> Iterator[str]:
    """Turn host[1-3] into host1, host2, host3; other names stay as they are."""
    for pattern in patterns:
        found = re.fullmatch(r"(.*)\[(\d+)-(\d+)\](.*)", pattern)
        if found:
            first, last = int(found[2]), int(found[3])
            yield from (f"{found[1]}{number}{found[4]}" for number in range(first, last + 1))
        else:
            yield pattern

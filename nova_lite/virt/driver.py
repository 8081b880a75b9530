# SPDX-License-Identifier: Apache-2.0
"""The interface of a hypervisor driver: what a compute service asks of the machine that it drives.

Drivers know nothing of the bus or the database. Every call may be repeated: each looks at what is already true and
goes on from there. Every call returns or raises within a bounded time, also when the hypervisor hangs
(``HypervisorUnavailable``). Calls for different instances come from many threads at once; calls for one instance
never overlap, since the compute manager holds that instance's lock.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from nova_lite.objects.diagnostics import Diagnostics, Screen
from nova_lite.objects.instance import DomainInfo, Instance
from nova_lite.objects.move import Progress
from nova_lite.objects.node import NodeInventory

# Called with an instance's uuid when its domain may have changed state by itself. It only says "look": the receiver
# asks the hypervisor what is true now, so a late event can do no harm.
EventSink = Callable[[str], None]


class ConfigDrive(abc.ABC):
    """The content of a config drive, made when it is needed (see network and compute/metadata)."""

    @abc.abstractmethod
    def files(self) -> dict[str, bytes]:
        """Return path below the drive's root ("openstack/latest/meta_data.json") -> content."""


class Vif:
    """One network interface of a guest, as a network driver made it: plug it into this bridge with this address."""

    def __init__(self, port: str, mac: str, bridge: str | None = None, mtu: int | None = None) -> None:
        self.port, self.mac, self.bridge, self.mtu = port, mac, bridge, mtu


# Called while a live migration runs, about twice a second, with how far it is. The answer is what is wished of it by
# now: "", objects.move.ABORT or FORCE_COMPLETE.
Watch = Callable[[Progress], str]

# What a destination tells a source about itself: JSON, made and read by drivers alone.
Destination = dict[str, Any]


class Driver(abc.ABC):
    """A hypervisor. One driver object serves one compute service, which may own many nodes."""

    #: Whether spawn wants the image's file; without, none is fetched.
    needs_image: ClassVar[bool] = True

    @abc.abstractmethod
    def start(self, events: EventSink) -> None:
        """Connect, and from now on report events. A hypervisor that is away is retried in the background."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Let go of the hypervisor. Domains go on running."""

    @abc.abstractmethod
    def inventory(self) -> list[NodeInventory]:
        """Return what each node has, in the units of Resources.

        :raises HypervisorUnavailable: it does not answer.
        """

    @abc.abstractmethod
    def domains(self) -> list[DomainInfo]:
        """Return every domain of ours on every node (those of others on the same hypervisor are left out)."""

    def domain(self, uuid: str) -> DomainInfo | None:
        """Return one domain of ours, None if there is none."""
        return next((domain for domain in self.domains() if domain.uuid == uuid), None)

    def domains_of(self, uuid: str) -> list[DomainInfo]:
        """Return the domains of one server: two if it moves between two nodes of this driver."""
        found = self.domain(uuid)
        return [found] if found else []

    def check(self) -> None:
        """Make sure that the hypervisor answers; a compute service whose hypervisor does not is not alive.

        :raises HypervisorUnavailable:
        """
        self.domains()

    @abc.abstractmethod
    def spawn(self, instance: Instance, image: Path | None, vifs: list[Vif], config_drive: ConfigDrive | None) -> None:
        """Make and start the domain; a domain that already runs is left alone.

        :param image: the base image in the compute's cache, a checked qcow2 or raw file; never written to.
        :raises BuildFailed: with the reason that the user reads; nothing is left behind.
        """

    @abc.abstractmethod
    def destroy(self, instance: Instance) -> None:
        """Remove the domain, its disks and its console log. One that does not exist is no error."""

    @abc.abstractmethod
    def power_state(self, instance: Instance) -> int:
        """Return the domain's power state (objects.instance), NOSTATE if there is no domain."""

    @abc.abstractmethod
    def power_on(self, instance: Instance) -> None:
        """Start the domain; no error if it runs.

        :raises DomainNotFound:
        """

    @abc.abstractmethod
    def power_off(self, instance: Instance, timeout: float) -> None:
        """Ask the guest to power off, and after timeout seconds (0: at once) take its power away.

        Of a suspended guest the memory is thrown away.
        """

    @abc.abstractmethod
    def reboot(self, instance: Instance, hard: bool, timeout: float) -> None:
        """Restart the guest. Soft: ask it, and after timeout seconds restart it hard."""

    @abc.abstractmethod
    def pause(self, instance: Instance) -> None:
        """Stop the guest's CPUs and keep its memory; no error if they are stopped.

        :raises DomainNotFound:
        """

    @abc.abstractmethod
    def unpause(self, instance: Instance) -> None:
        """Let the guest's CPUs go on; no error if they do.

        :raises DomainNotFound:
        """

    @abc.abstractmethod
    def suspend(self, instance: Instance) -> None:
        """Write the guest's memory to disk and end it; its power state is POWER_SUSPENDED then, also across restarts.

        :raises DomainNotFound:
        """

    @abc.abstractmethod
    def resume(self, instance: Instance) -> None:
        """Let a suspended guest go on where it was; no error if it runs.

        :raises DomainNotFound:
        """

    @abc.abstractmethod
    def rescue(self, instance: Instance, image: Path | None, timeout: float) -> None:
        """Boot the server from a disk made of the image, with its own disks after that one; done before is no error.

        The guest may take timeout seconds to power off by itself before. It is to be undone with ``unrescue``, also by
        another process.

        :raises DomainNotFound:
        :raises RescueFailed: the server has its own definition, and runs.
        """

    @abc.abstractmethod
    def unrescue(self, instance: Instance) -> None:
        """Boot a rescued server from its own disk again; one that is not rescued only gets power.

        :raises DomainNotFound:
        """

    @abc.abstractmethod
    def snapshot(self, instance: Instance, destination: Path, given_up: Callable[[], bool]) -> None:
        """Write the root disk as it is at one moment to the destination, a qcow2 file of its own; the guest goes on.

        :param destination: a file that may exist and is overwritten.
        :param given_up: asked now and then whether nobody wants it any more.
        :raises DomainNotFound:
        :raises SnapshotFailed: what stands at the destination is of no use.
        """

    @abc.abstractmethod
    def console_output(self, instance: Instance, lines: int | None) -> str:
        """Return the last lines of the serial log (all that is kept for None).

        :raises DomainNotFound:
        """

    @abc.abstractmethod
    def diagnostics(self, instance: Instance) -> Diagnostics:
        """Return what the hypervisor measures of a domain that has power.

        :raises DomainNotFound:
        """

    @abc.abstractmethod
    def screen(self, instance: Instance) -> Screen | None:
        """Return where the domain's screen is served over VNC now; None if it has none, or no power.

        :raises DomainNotFound:
        """

    # -- moves: what the steps of objects/move.py ask of either side -------------------------------------------------

    @abc.abstractmethod
    def prepare_destination(
        self, instance: Instance, image: Path | None, vifs: list[Vif], config_drive: ConfigDrive | None, live: bool
    ) -> Destination:
        """Make room for a server that is to come here, and say what its source must know.

        instance has the flavor that the server will have here; its source host is told to the source alone. If this
        very host is the source of a resize (its domain is here), the answer says so, and nothing is touched.

        :param image: the base image in this host's cache; None if there is none any more, and the source brings it.
        :param live: the domain comes running: its disks are made here already, as empty overlays of their final size.
        :raises BuildFailed: it cannot come here; nothing is left behind.
        :raises MigrationFailed: it cannot go anywhere with this flavor, as to a smaller root disk.
        """

    @abc.abstractmethod
    def move_out(self, instance: Instance, destination: Destination, timeout: float) -> None:
        """Power the guest off (asking it for timeout seconds) and bring its disks to the destination.

        All that it takes to go back stays here: the domain, and disks as they are now.

        :raises MigrationFailed: the reason is for the user.
        """

    @abc.abstractmethod
    def finish_migration(
        self,
        instance: Instance,
        destination: Destination,
        image: Path | None,
        vifs: list[Vif],
        config_drive: ConfigDrive | None,
        power_on: bool,
    ) -> None:
        """Make the domain of a server whose disks have come; grow its root disk to the flavor's, never shrink it.

        :raises MigrationFailed:
        """

    @abc.abstractmethod
    def restore(self, instance: Instance, destination: Destination, power_on: bool) -> None:
        """Undo ``move_out`` here at the source: old domain, old disks; start it if it ran. Done before is no error."""

    @abc.abstractmethod
    def discard(self, instance: Instance, destination: Destination) -> None:
        """Remove here, at the destination, what was made for a server that does not come; shared disks stay.

        To be called only with proof that the server lives elsewhere. Nothing there is no error.
        """

    @abc.abstractmethod
    def clean(self, instance: Instance, destination: Destination) -> None:
        """Remove here, at the source, what a server that has moved away has left: domain, disks, kept old disks.

        Shared disks, which the destination uses, stay. Nothing there is no error.
        """

    @abc.abstractmethod
    def live_migrate(self, instance: Instance, destination: Destination, watch: Watch) -> None:
        """Hand the running guest over to the destination, and return when it runs there and no longer here.

        Called again after this process died in it, it waits for a migration that still runs; a guest that is gone from
        here is no error: whoever asked looks at the destination.

        :raises MigrationAborted: it was wished; the guest runs on here.
        :raises MigrationFailed: the guest runs on here.
        :raises HypervisorUnavailable: it is not known where the guest runs.
        """

    @abc.abstractmethod
    def land(self, instance: Instance, vifs: list[Vif], config_drive: ConfigDrive | None) -> None:
        """Make the domain that has come running here one that lasts: persistent, with its console log and the rest.

        :raises DomainNotFound: it is not here.
        """

    @abc.abstractmethod
    def has_disks(self, instance: Instance) -> bool:
        """Tell whether the server's disks can be seen here although its domain is not: shared storage."""

    @abc.abstractmethod
    def adopt(self, instance: Instance, vifs: list[Vif], config_drive: ConfigDrive | None, power_on: bool) -> None:
        """Make the domain of a server from disks on shared storage, whose own host is dead.

        :raises BuildFailed: the disks stay as they are.
        """

    @abc.abstractmethod
    def remains(self) -> list[DomainInfo]:
        """Return what is here of servers without a domain: directories of disks, in power state NOSTATE."""

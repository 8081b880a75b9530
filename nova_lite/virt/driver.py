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
from typing import ClassVar

from nova_lite.objects.instance import DomainInfo, Instance
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
        """Ask the guest to power off, and after timeout seconds (0: at once) take its power away."""

    @abc.abstractmethod
    def reboot(self, instance: Instance, hard: bool, timeout: float) -> None:
        """Restart the guest. Soft: ask it, and after timeout seconds restart it hard."""

    @abc.abstractmethod
    def console_output(self, instance: Instance, lines: int | None) -> str:
        """Return the last lines of the serial log (all that is kept for None).

        :raises DomainNotFound:
        """

# SPDX-License-Identifier: Apache-2.0
"""One domain of ours, as it is used inside a call: everything here runs on a worker thread of the connection."""

from __future__ import annotations

from dataclasses import dataclass

import libvirt

from nova_lite.objects import instance as states
from nova_lite.virt.libvirt import domain_xml
from nova_lite.virt.libvirt.connection import VirConnect, VirDomain

_POWER_STATES = {
    libvirt.VIR_DOMAIN_NOSTATE: states.NOSTATE,
    libvirt.VIR_DOMAIN_RUNNING: states.RUNNING,
    libvirt.VIR_DOMAIN_BLOCKED: states.RUNNING,
    libvirt.VIR_DOMAIN_PAUSED: states.POWER_PAUSED,
    libvirt.VIR_DOMAIN_SHUTDOWN: states.RUNNING,  # it is being shut down, and still runs
    libvirt.VIR_DOMAIN_SHUTOFF: states.SHUTDOWN,
    libvirt.VIR_DOMAIN_CRASHED: states.CRASHED,
    libvirt.VIR_DOMAIN_PMSUSPENDED: states.POWER_SUSPENDED,
}

_UNDEFINE = (
    libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
    | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
    | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
    | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
)


@dataclass(frozen=True, slots=True)
class Guest:
    """A domain that carries our metadata."""

    domain: VirDomain

    @property
    def uuid(self) -> str:
        """The instance's uuid, which is the domain's."""
        uuid: str = self.domain.UUIDString()
        return uuid

    def power_state(self) -> int:
        """Return the state in the API's numbers; one that is off and has its memory on disk is suspended.

        A domain that has gone since it was found has no state.
        """
        try:
            state = _POWER_STATES.get(self.domain.state()[0], states.NOSTATE)
            if state == states.SHUTDOWN and self.domain.hasManagedSaveImage(0):
                return states.POWER_SUSPENDED
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                return states.NOSTATE
            raise
        return state

    def start(self) -> None:
        """Give power; no error if it has some. A paused guest goes on."""
        if self.power_state() == states.POWER_PAUSED:
            self.domain.resume()
        elif not self.domain.isActive():
            self.domain.createWithFlags(0)

    def press_power_button(self) -> None:
        """Send the ACPI event that asks the guest to shut down; no error if it has no power."""
        try:
            self.domain.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
        except libvirt.libvirtError as error:
            if error.get_error_code() != libvirt.VIR_ERR_OPERATION_INVALID:
                raise

    def cut_power(self) -> None:
        """End the guest at once, and forget the memory of a suspended one; no error if it has no power."""
        try:
            self.domain.destroyFlags(0)
        except libvirt.libvirtError as error:
            if error.get_error_code() not in (libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_NO_DOMAIN):
                raise
        self._forget_memory()

    def _forget_memory(self) -> None:
        try:
            if self.domain.hasManagedSaveImage(0):
                self.domain.managedSaveRemove(0)
        except libvirt.libvirtError as error:
            if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise

    def pause(self) -> None:
        """Stop the guest's CPUs; no error if they are stopped."""
        if self.power_state() != states.POWER_PAUSED:
            self.domain.suspend()

    def unpause(self) -> None:
        """Let the guest's CPUs go on; no error if they do."""
        if self.power_state() == states.POWER_PAUSED:
            self.domain.resume()

    def save(self) -> None:
        """Write the guest's memory to disk and end it; no error if that was done."""
        if self.power_state() != states.POWER_SUSPENDED:
            # Running: it is to run again when it is restored, also if it was paused for the saving.
            self.domain.managedSave(libvirt.VIR_DOMAIN_SAVE_RUNNING)

    def wake(self) -> None:
        """Let a suspended guest go on, be its memory on disk or itself asleep; no error if it runs."""
        if self.domain.state()[0] == libvirt.VIR_DOMAIN_PMSUSPENDED:
            self.domain.pMWakeup(0)
        else:
            self.start()

    def remove(self) -> None:
        """End the guest and forget its definition."""
        self.cut_power()
        try:
            self.domain.undefineFlags(_UNDEFINE)
        except libvirt.libvirtError as error:
            if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise


def find(conn: VirConnect, uuid: str) -> Guest | None:
    """Return our domain with the uuid, or None."""
    try:
        domain = conn.lookupByUUIDString(uuid)
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            return None
        raise
    return Guest(domain) if _is_ours(domain) else None


def find_all(conn: VirConnect) -> list[Guest]:
    """Return all our domains, running or not."""
    return [Guest(domain) for domain in conn.listAllDomains(0) if _is_ours(domain)]


def define(conn: VirConnect, xml: str) -> Guest:
    """Make the domain known to libvirt; it does not run yet."""
    return Guest(conn.defineXMLFlags(xml, libvirt.VIR_DOMAIN_DEFINE_VALIDATE))


def _is_ours(domain: VirDomain) -> bool:
    if not domain_xml.is_our_name(domain.name(), domain.UUIDString()):
        return False
    try:
        domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, domain_xml.METADATA_URI, 0)
    except libvirt.libvirtError as error:
        if error.get_error_code() in (libvirt.VIR_ERR_NO_DOMAIN_METADATA, libvirt.VIR_ERR_NO_DOMAIN):
            return False
        raise
    return True

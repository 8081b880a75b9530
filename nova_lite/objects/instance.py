# SPDX-License-Identifier: Apache-2.0
"""An instance as a compute service needs it, and the states that instances can be in."""

from __future__ import annotations

from dataclasses import dataclass, field

from nova_lite.objects.flavor import Flavor
from nova_lite.objects.image import Image
from nova_lite.objects.network import Port

# vm_state: what the instance is, by the books.
BUILDING = "building"
ACTIVE = "active"
STOPPED = "stopped"
PAUSED = "paused"
SUSPENDED = "suspended"
RESCUED = "rescued"
SHELVED = "shelved"
SHELVED_OFFLOADED = "shelved_offloaded"
RESIZED = "resized"
ERROR = "error"
DELETED = "deleted"

#: A server in these that has an allocation is being built. Only while it is unshelved has one of the second any.
BUILT_ANEW = (BUILDING, SHELVED_OFFLOADED)

# task_state: what is being done to it; None when nothing is.
SCHEDULING = "scheduling"
SPAWNING = "spawning"
DELETING = "deleting"
POWERING_ON = "powering-on"
POWERING_OFF = "powering-off"
REBOOTING = "rebooting"
REBOOTING_HARD = "rebooting_hard"
RESIZE_PREP = "resize_prep"
RESIZE_MIGRATING = "resize_migrating"
RESIZE_FINISH = "resize_finish"
RESIZE_REVERTING = "resize_reverting"
MIGRATING = "migrating"
REBUILDING = "rebuilding"
REBUILD_SPAWNING = "rebuild_spawning"
PAUSING = "pausing"
UNPAUSING = "unpausing"
SUSPENDING = "suspending"
RESUMING = "resuming"
RESCUING = "rescuing"
UNRESCUING = "unrescuing"
IMAGE_SNAPSHOT = "image_snapshot"
IMAGE_BACKUP = "image_backup"
IMAGE_UPLOADING = "image_uploading"
SHELVING = "shelving"
SHELVING_IMAGE_UPLOADING = "shelving_image_uploading"
SHELVING_OFFLOADING = "shelving_offloading"
UNSHELVING = "unshelving"

# power_state: what the hypervisor says (the numbers are the API's).
NOSTATE = 0
RUNNING = 1
POWER_PAUSED = 3
SHUTDOWN = 4
CRASHED = 6
POWER_SUSPENDED = 7


@dataclass(frozen=True, slots=True)
class NetworkRequest:
    """How a server asks to be connected: to nothing ("none") or to the built-in network ("auto").

    fixed_ip and tag are what it asks for of its port; port is what it got, None as long as it has none.
    """

    kind: str = "none"
    fixed_ip: str = ""
    tag: str = ""
    port: Port | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """All that a compute service is told of a server; it has no other source.

    user_data is base64 as the user gave it; injected_files are pairs of a path and its content in base64. image is None
    only for a server without one.
    """

    uuid: str
    name: str
    hostname: str
    project_id: str
    user_id: str
    flavor: Flavor
    node: str
    host: str
    image: Image | None = None
    availability_zone: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    key_name: str | None = None
    key_data: str | None = None
    user_data: str | None = None
    injected_files: tuple[tuple[str, str], ...] = ()
    config_drive: bool = False
    launch_index: int = 0
    networks: tuple[NetworkRequest, ...] = ()

    @property
    def ports(self) -> tuple[Port, ...]:
        """The ports that it has got on networks that hand addresses out."""
        return tuple(request.port for request in self.networks if request.port is not None)


@dataclass(frozen=True, slots=True)
class DomainInfo:
    """One domain that a hypervisor knows: its instance's uuid, the node that it is on, its power state."""

    uuid: str
    node: str
    power_state: int

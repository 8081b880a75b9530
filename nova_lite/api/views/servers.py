# SPDX-License-Identifier: Apache-2.0
"""Servers as the API shows them, at each microversion: pure functions of rows and of what was read beside them."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nova_lite.api import server_status
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.views import links
from nova_lite.db.instance_search import Listed
from nova_lite.db.instances import Instance, flavor_from, image_from
from nova_lite.objects import instance as states

LOCKED = Version(2, 9)
HOST_STATUS = Version(2, 16)
DESCRIPTION = Version(2, 19)
TAGS = Version(2, 26)
EMBEDDED_FLAVOR = Version(2, 47)
REBUILD_KEY = Version(2, 54)
REBUILD_USER_DATA = Version(2, 57)
TRUSTED_CERTIFICATES = Version(2, 63)
SERVER_GROUPS = Version(2, 71)
LOCKED_REASON = Version(2, 73)
UNIFORM_BODIES = Version(2, 75)
HOSTNAME = Version(2, 90)
PINNED_ZONE = Version(2, 96)
IMAGE_PROPERTIES = Version(2, 98)
SCHEDULER_HINTS = Version(2, 100)

# The properties of images that mean something to hosts and schedulers begin so, or are older than this custom.
_PROPERTY_PREFIXES = ("hw_", "img_", "os_")
_OLD_PROPERTIES = frozenset(
    (
        *("architecture", "owner_id", "vmware_disktype", "vmware_image_version", "vmware_ostype", "auto_disk_config"),
        *("ipxe_boot", "vmware_linked_clone", "cache_in_nova", "vm_mode", "mappings", "block_device_mapping", "bdm_v2"),
        *("root_device_name", "hypervisor_version_requires", "hypervisor_type", "traits_required"),
    )
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is shown of servers and does not stand in their rows, read once for all of a page.

    tags are by the servers' uuids, zones and host_statuses by host, groups (uuids) by the groups' ids. host_statuses
    is None for those who may not see them; extended and extra_specs tell whether the caller may see these.
    """

    default_zone: str
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    zones: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[int, str] = field(default_factory=dict)
    host_statuses: Mapping[str, str] | None = None
    unknown_status_only: bool = False
    extended: bool = False
    extra_specs: bool = False
    fault_details: bool = False


def host_id(project_id: str, host: str | None) -> str:
    """Return what tells a project which of its servers share a host, and nobody which host it is."""
    return hashlib.sha224(f"{project_id}{host}".encode()).hexdigest() if host else ""


def created(
    req: Request, uuid: str, disk_config: str, security_groups: Sequence[Mapping[str, str]], admin_pass: str
) -> dict[str, Any]:
    """Show what a create answers, of the first of the servers."""
    return {
        "server": {
            "id": uuid,
            "links": links.resource(req, "servers", uuid),
            "OS-DCF:diskConfig": disk_config,
            "security_groups": list(security_groups),
            "adminPass": admin_pass,
        }
    }


def short_list(req: Request, rows: Iterable[Listed]) -> list[dict[str, Any]]:
    """Show servers by id, name and links alone."""
    return [{"id": uuid, "name": name, "links": links.resource(req, "servers", uuid)} for uuid, name in rows]


def detail(req: Request, row: Instance, facts: Facts) -> dict[str, Any]:
    """Show a server as a list of details does."""
    server = core(req, row, facts)
    server.update(
        {
            "OS-EXT-AZ:availability_zone": _zone(row, facts),
            "config_drive": "True" if row.config_drive else "",
            "key_name": row.key_name,
            "OS-SRV-USG:launched_at": links.precise(row.launched_at),
            "OS-SRV-USG:terminated_at": links.precise(row.terminated_at),
            "security_groups": [],
            "OS-EXT-STS:task_state": row.task_state,
            "OS-EXT-STS:vm_state": row.vm_state,
            "OS-EXT-STS:power_state": row.power_state,
            "os-extended-volumes:volumes_attached": [],
        }
    )
    if facts.extended:
        server.update(_extended(row, req.version))
    elif req.version >= HOSTNAME:
        server["OS-EXT-SRV-ATTR:hostname"] = row.hostname
    if req.version >= HOST_STATUS and facts.host_statuses is not None:
        status = facts.host_statuses.get(row.host, server_status.UNKNOWN) if row.host else ""
        if status == server_status.UNKNOWN or not facts.unknown_status_only:
            server["host_status"] = status
    if req.version >= PINNED_ZONE:
        server["pinned_availability_zone"] = row.requested_zone
    if req.version >= SCHEDULER_HINTS:
        server["scheduler_hints"] = _hints(row)
    return server


def _hints(row: Instance) -> dict[str, Any]:
    """Show the hints that the server was created with; of those that are lists, the ones of a single part are that."""
    found: dict[str, list[str]] = json.loads(row.scheduler_hints)
    return {name: given[0] if len(given) == 1 else given for name, given in found.items()}


def show(req: Request, row: Instance, facts: Facts) -> dict[str, Any]:
    """Show a single server; unlike a list it names the server's group."""
    server = detail(req, row, facts)
    _add_groups(server, req.version, row, facts)
    return server


def updated(req: Request, row: Instance, facts: Facts) -> dict[str, Any]:
    """Show a server that was changed: below 2.75 with fewer fields than otherwise."""
    if req.version >= UNIFORM_BODIES:
        return show(req, row, facts)
    server = core(req, row, facts, extended_addresses=False)
    if req.version >= HOSTNAME:
        server["OS-EXT-SRV-ATTR:hostname"] = row.hostname
    _add_groups(server, req.version, row, facts)
    return server


def rebuilt(req: Request, row: Instance, facts: Facts, admin_pass: str) -> dict[str, Any]:
    """Show a server that is being rebuilt: as one that was changed, with what a new guest gets."""
    server = updated(req, row, facts)
    # As user_data it is there for everybody.
    server.pop("OS-EXT-SRV-ATTR:user_data", None)
    if req.version >= REBUILD_KEY:
        server["key_name"] = row.key_name
    if req.version >= REBUILD_USER_DATA:
        server["user_data"] = row.user_data
    server["adminPass"] = admin_pass
    return server


def core(req: Request, row: Instance, facts: Facts, extended_addresses: bool = True) -> dict[str, Any]:
    """Show the fields that every answer about a server has."""
    version = req.version
    status = server_status.status_of(row.vm_state, row.task_state, row.deleted)
    server: dict[str, Any] = {
        "id": row.uuid,
        "name": row.name,
        "status": status,
        "tenant_id": row.project_id,
        "user_id": row.user_id,
        "metadata": json.loads(row.metadata) if row.metadata != "{}" else {},
        "hostId": host_id(row.project_id, row.host),
        "image": _image(req, row),
        "flavor": _flavor(req, row, facts),
        "created": links.utc(row.created_at),
        "updated": links.utc(row.updated_at),
        "addresses": addresses(row, extended_addresses),
        "accessIPv4": row.access_ip_v4 or "",
        "accessIPv6": row.access_ip_v6 or "",
        "links": links.resource(req, "servers", row.uuid),
        "OS-DCF:diskConfig": row.disk_config,
    }
    if status in server_status.IN_PROGRESS:
        server["progress"] = 0
    if status in server_status.FAULTY and row.fault_message is not None:
        server["fault"] = _fault(row, facts)
    if version >= LOCKED:
        server["locked"] = row.locked_by is not None
    if version >= DESCRIPTION:
        server["description"] = row.description
    if version >= TAGS:
        server["tags"] = list(facts.tags.get(row.uuid, ()))
    if version >= TRUSTED_CERTIFICATES:
        server["trusted_image_certificates"] = None
    if version >= LOCKED_REASON:
        server["locked_reason"] = row.locked_reason
    return server


def addresses(row: Instance, extended: bool) -> dict[str, list[dict[str, Any]]]:
    """Show a server's addresses by network; extended ones name their kind and their MAC address."""
    if row.addresses == "{}" or row.vm_state == states.BUILDING:
        return {}
    found: dict[str, list[dict[str, Any]]] = json.loads(row.addresses)
    return {
        network: [
            {key: value for key, value in address.items() if extended or key in ("addr", "version")} for address in of
        ]
        for network, of in found.items()
    }


def _image(req: Request, row: Instance) -> dict[str, Any] | str:
    if not row.image_ref:
        return ""
    shown: dict[str, Any] = {"id": row.image_ref, "links": [links.resource(req, "images", row.image_ref)[1]]}
    if req.version >= IMAGE_PROPERTIES:
        shown["properties"] = _image_properties(row.image)
    return shown


@functools.lru_cache(maxsize=1024)
def _image_properties(text: str) -> dict[str, str]:
    """Show the properties of a pinned image that are not only words; servers of a list share few images."""
    image = image_from(text)
    return {
        name: value
        for name, value in (image.properties if image else {}).items()
        if name.startswith(_PROPERTY_PREFIXES) or name in _OLD_PROPERTIES
    }


def _flavor(req: Request, row: Instance, facts: Facts) -> dict[str, Any]:
    if req.version < EMBEDDED_FLAVOR:
        return {"id": row.flavorid, "links": [links.resource(req, "flavors", row.flavorid)[1]]}
    shown = _embedded_flavor(row.flavor)
    return shown if facts.extra_specs else {key: value for key, value in shown.items() if key != "extra_specs"}


@functools.lru_cache(maxsize=1024)
def _embedded_flavor(text: str) -> dict[str, Any]:
    """Show a pinned flavor; servers of a list share few, so each is read once."""
    flavor = flavor_from(text)
    return {
        "original_name": flavor.name,
        "vcpus": flavor.vcpus,
        "ram": flavor.memory_mb,
        "disk": flavor.root_gb,
        "ephemeral": flavor.ephemeral_gb,
        "swap": flavor.swap_mb,
        "extra_specs": flavor.extra_specs,
    }


def _zone(row: Instance, facts: Facts) -> str:
    if not row.host:
        return row.requested_zone or ""
    return facts.zones.get(row.host, facts.default_zone)


def _extended(row: Instance, version: Version) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "OS-EXT-SRV-ATTR:host": row.host,
        "OS-EXT-SRV-ATTR:hypervisor_hostname": row.node,
        "OS-EXT-SRV-ATTR:instance_name": f"instance-{row.uuid}",
    }
    if version >= Version(2, 3):
        shown |= {
            "OS-EXT-SRV-ATTR:hostname": row.hostname,
            "OS-EXT-SRV-ATTR:reservation_id": row.reservation_id,
            "OS-EXT-SRV-ATTR:launch_index": row.launch_index,
            "OS-EXT-SRV-ATTR:kernel_id": "",
            "OS-EXT-SRV-ATTR:ramdisk_id": "",
            "OS-EXT-SRV-ATTR:root_device_name": row.root_device_name,
            "OS-EXT-SRV-ATTR:user_data": row.user_data,
        }
    return shown


def _fault(row: Instance, facts: Facts) -> dict[str, Any]:
    code = row.fault_code or 500
    fault = {"code": code, "created": links.utc(row.fault_at or row.updated_at), "message": row.fault_message}
    if row.fault_details and (facts.fault_details or code != 500):
        fault["details"] = row.fault_details
    return fault


def _add_groups(server: dict[str, Any], version: Version, row: Instance, facts: Facts) -> None:
    if version >= SERVER_GROUPS:
        group = facts.groups.get(row.group_id) if row.group_id is not None else None
        server["server_groups"] = [group] if group else []

# SPDX-License-Identifier: Apache-2.0
"""From the body of a create to the instances that are asked for: everything that can be refused is refused here.

What only means something with a network or a volume service is accepted in the form that asks nothing of them, and
refused with a sentence in any other. What needs the database is read in one unit (``read_wishes``) before.
"""

from __future__ import annotations

import json
import re
import secrets
import string
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from nova_lite import exception, policy
from nova_lite.api import image_lookup, personality, server_fields, server_networks
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.server_lookup import API
from nova_lite.api.services import Services
from nova_lite.api.validation import boolean
from nova_lite.db import flavors, key_pairs, quotas, registry, server_groups, zones
from nova_lite.db.instances import NewInstances
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.image import Image

Body = Mapping[str, Any]

_GIB = 1 << 30
# Characters of scheduler hints, which every one of the servers carries with it.
_MOST_HINTS = 65535
_PASSWORD_LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the servers shall be, as far as the request says: availability_zone, host and hypervisor_hostname."""

    zone: str | None = None
    host: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the request names and the database has."""

    flavor: Flavor
    key_data: str | None = None
    group_id: int | None = None
    group_members: int = -1
    injected_files: personality.Files = ()


def new_instances(services: Services, req: Request, body: Body) -> NewInstances:
    """Make of a body that has passed its schema what db.instances.create takes.

    :raises BadRequest: something in it is impossible here.
    :raises Forbidden: the caller may not ask for this.
    """
    server = body["server"]
    _refuse_other_services(server)
    placement = _placement(req, server)
    least, most = _counts(server, services.conf.api.max_servers_per_request)
    hostname = server.get("hostname")
    if hostname and most > 1:
        raise exception.BadRequest("Unable to allocate a single hostname to multiple instances")
    hints = _hints(body)
    image_id = _image_id(server)
    wishes = services.db.read(lambda conn: read_wishes(conn, services, req, server, hints, placement))
    image = find_image(services, req, image_id, "Can not find requested image")
    check_sizes(req, wishes.flavor, image)
    uuids = [str(uuid.uuid4()) for _ in range(most)]
    names = _names(server["name"], most)
    return NewInstances(
        uuids=uuids,
        names=names,
        hostnames=[hostname] if hostname else [_hostname(*pair) for pair in zip(names, uuids, strict=True)],
        flavor=wishes.flavor,
        image=image,
        reservation_id=f"r-{secrets.token_hex(4)}",
        min_count=least,
        description=server.get("description") if req.version >= Version(2, 19) else server["name"],
        requested_zone=placement.zone,
        requested_host=placement.host,
        requested_node=placement.node,
        group_id=wishes.group_id,
        group_members=wishes.group_members,
        hints=hints,
        key_name=server.get("key_name"),
        key_data=wishes.key_data,
        user_data=server.get("user_data"),
        injected_files=wishes.injected_files,
        config_drive=boolean(server.get("config_drive", False))
        or image.properties.get("img_config_drive") == "mandatory",
        metadata=server.get("metadata", {}),
        networks=server_networks.requested(services.network, server, uuids),
        disk_config=server.get("OS-DCF:diskConfig", "MANUAL"),
        access_ip_v4=server.get("accessIPv4"),
        access_ip_v6=server_fields.shortest(server.get("accessIPv6")),
        tags=server.get("tags", ()),
    )


def password(server: Body) -> str:
    """Return the administrator's password that the request gives, or a new one."""
    return server.get("adminPass") or "".join(secrets.choice(_PASSWORD_LETTERS) for _ in range(12))


def read_wishes(
    conn: sa.Connection, services: Services, req: Request, server: Body, hints: dict[str, list[str]], place: Placement
) -> Wishes:
    """Read the flavor, the key pair and the group, and check what else needs the database.

    :raises BadRequest: one of them does not exist for the caller.
    :raises QuotaExceeded: there are more metadata items or files than a server may have.
    """
    project_id = req.nova.project_id or ""
    flavor = _flavor(conn, req, str(server["flavorRef"]))
    _check_placement(conn, services, place)
    key_data = public_key(conn, req, server.get("key_name"))
    wanted = hints.get("group")
    if not wanted and not server.get("metadata") and not server.get("personality"):
        return Wishes(flavor, key_data)
    limits = quotas.limits(conn, services.conf, project_id, req.user_id)
    quotas.check_count("metadata_items", 0, limits["metadata_items"], len(server.get("metadata", ())))
    files = personality.files(server, limits)
    if not wanted:
        return Wishes(flavor, key_data, injected_files=files)
    try:
        group = server_groups.get(conn, wanted[0].lower(), project_id)
    except exception.ServerGroupNotFound as error:
        raise exception.BadRequest(str(error))
    return Wishes(flavor, key_data, group.id, limits["server_group_members"], files)


def _flavor(conn: sa.Connection, req: Request, flavorid: str) -> Flavor:
    try:
        return flavors.get(conn, flavorid, None if req.nova.is_admin else req.nova.project_id)
    except exception.FlavorNotFound as error:
        raise exception.BadRequest(str(error))


def public_key(conn: sa.Connection, req: Request, name: str | None) -> str | None:
    """Return the key of the user's key pair, None for none.

    :raises BadRequest: there is no such key pair.
    """
    if name is None:
        return None
    try:
        return key_pairs.get(conn, req.nova.user_id or "", name).public_key
    except exception.KeyPairNotFound:
        raise exception.BadRequest("Invalid key_name provided.")


def _check_placement(conn: sa.Connection, services: Services, place: Placement) -> None:
    if place.zone is not None and place.zone != services.conf.api.default_availability_zone:
        known = set(zones.by_host(conn).values())
        if place.zone not in known:
            raise exception.BadRequest("The requested availability zone is not available")
    if place.host is not None and not registry.compute_servers(conn, [place.host], services.conf.service_down_time):
        raise exception.BadRequest(f"Compute host {place.host} could not be found.")


def _placement(req: Request, server: Body) -> Placement:
    """Read where the servers shall be; naming a host is for administrators, in either of its two forms."""
    zone, _, rest = server.get("availability_zone", "").partition(":")
    host, _, node = rest.partition(":")
    if ":" in node:
        raise exception.BadRequest("Invalid input received: Unable to parse availability_zone")
    if host or node:
        policy.authorize(req.nova, API + "servers:create:forced_host")
    named = (server.get("host"), server.get("hypervisor_hostname"))
    if any(named):
        if host or node:
            raise exception.BadRequest(
                "A host or node is named twice: in availability_zone, and in host or hypervisor_hostname."
            )
        policy.authorize(req.nova, "compute:servers:create:requested_destination")
        host, node = named[0] or "", named[1] or ""
    return Placement(zone or None, host or None, node or None)


def _counts(server: Body, largest: int) -> tuple[int, int]:
    least = int(server.get("min_count", 1))
    most = int(server.get("max_count", least))
    if least > most:
        raise exception.BadRequest("min_count must be <= max_count")
    if most > largest:
        raise exception.BadRequest(f"max_count must be at most {largest}: ask for the rest in further requests.")
    return least, most


def _names(name: str, count: int) -> list[str]:
    if count == 1:
        return [name]
    suffixes = [f"-{number}" for number in range(1, count + 1)]
    return [name[: 255 - len(suffix)] + suffix for suffix in suffixes]


def _hostname(name: str, instance_uuid: str) -> str:
    """Make a host name of a server's name: the letters, digits and dashes of it, at most 63."""
    ascii_name = name.encode("ascii", "ignore").decode()
    words = re.sub(r"[^\w-]+", "", re.sub(r"[ _.]", "-", ascii_name)).lower()
    return words[:63].strip("-") or f"server-{instance_uuid}"


def _hints(body: Body) -> dict[str, list[str]]:
    """Read the scheduler hints under either name, each as a list of strings."""
    given = body.get("os:scheduler_hints", body.get("OS-SCH-HNT:scheduler_hints", {}))
    hints: dict[str, list[str]] = {}
    for name, value in given.items():
        values = value if isinstance(value, list) else [value]
        hints[name] = [item if isinstance(item, str) else json.dumps(item) for item in values]
    if sum(len(name) + sum(map(len, values)) for name, values in hints.items()) > _MOST_HINTS:
        raise exception.BadRequest(f"The scheduler hints have more than {_MOST_HINTS} characters.")
    if len(hints.get("group", ())) > 1:
        raise exception.BadRequest("A server can join one server group only.")
    return hints


def _image_id(server: Body) -> str:
    """Return the image to boot from; a block device that says the same as imageRef is what some clients send."""
    image_id: str = server.get("imageRef", "")
    devices = server.get("block_device_mapping_v2", ())
    for device in devices:
        if not _is_boot_from_image(device) or len(devices) > 1 or image_id not in ("", device["uuid"]):
            raise exception.BadRequest(
                "This cloud has no volume service: the only block device that can be asked for is the image itself, "
                "with source_type image, destination_type local and boot_index 0."
            )
        image_id = device["uuid"]
    if not image_id:
        raise exception.BadRequest("Missing imageRef attribute")
    return image_id


def _is_boot_from_image(device: Body) -> bool:
    asked = {name: value for name, value in device.items() if value is not None}
    asked.pop("delete_on_termination", None)
    image_id = asked.pop("uuid", None)
    root = {"source_type": "image", "destination_type": "local", "boot_index": "0"}
    return bool(image_id) and {name: str(value) for name, value in asked.items()} == root


def _refuse_other_services(server: Body) -> None:
    if server.get("block_device_mapping"):
        raise exception.BadRequest("This cloud has no volume service: block_device_mapping cannot be used.")
    if server.get("trusted_image_certificates"):
        raise exception.BadRequest("This cloud does not check image signatures: leave out trusted_image_certificates.")
    unknown = sorted({group.get("name", "") for group in server.get("security_groups", ())} - {"default", ""})
    if unknown:
        raise exception.BadRequest(
            f"Security group {unknown[0]} not found: this cloud has no network service, and only the group 'default'."
        )


def find_image(services: Services, req: Request, image_id: str, missing: str) -> Image:
    """Return an image that the user may see and that can be booted from.

    :param missing: what to say if there is none.
    :raises BadRequest: there is none, or it has no content yet.
    """
    try:
        image = image_lookup.show_image(services, req.nova, image_id)
    except exception.ImageNotFound:
        raise exception.BadRequest(missing)
    if image.status != "active":
        raise exception.BadRequest(f"Image {image_id} is not active.")
    return image


def check_sizes(req: Request, flavor: Flavor, image: Image) -> None:
    """Make sure that the image fits the flavor; a root disk of 0 is as large as the image, and a privilege."""
    if flavor.memory_mb < image.min_ram:
        raise exception.BadRequest(
            f"Flavor's memory is too small for requested image: it has {flavor.memory_mb} MiB, the image needs "
            f"{image.min_ram} MiB."
        )
    if flavor.root_gb == 0:
        if not policy.allows(req.nova, API + "servers:create:zero_disk_flavor"):
            raise exception.Forbidden("Only administrators may create servers with a flavor that has no disk.")
        return
    if flavor.root_gb < image.min_disk:
        raise exception.BadRequest(
            "Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is "
            f"{flavor.root_gb * _GIB} bytes, minimum size is {image.min_disk * _GIB} bytes."
        )
    if flavor.root_gb * _GIB < (image.size or 0):
        raise exception.BadRequest(
            "Flavor's disk is too small for requested image. Flavor disk is "
            f"{flavor.root_gb * _GIB} bytes, image is {image.size} bytes."
        )

# SPDX-License-Identifier: Apache-2.0
"""What requests for servers may look like, at each microversion."""

from __future__ import annotations

from nova_lite.api import validation as v
from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import Schema

# A space at the end is refused, which Nova lets through: databases do not tell "a" from "a " in a key.
#: None is no zone: a server that was pinned to one is not any more.
ZONE: Schema = {"oneOf": [v.NAME, {"type": "null"}]}

TAG: Schema = {"type": "string", "minLength": 1, "maxLength": 60, "pattern": r"^[^,/]*[^,/\s]$"}
MAX_TAGS = 50
TAG_LIST: Schema = {"type": "array", "items": TAG, "maxItems": MAX_TAGS}

# What a guest is called: one label of the DNS, from 2.94 on a whole name.
HOSTNAME: Schema = {
    "type": "string",
    "minLength": 2,
    "maxLength": 63,
    "pattern": "^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$",
}
FQDN: Schema = {**HOSTNAME, "maxLength": 255, "pattern": "^[a-zA-Z0-9]+[a-zA-Z0-9-.]*[a-zA-Z0-9]+$"}

_IP: Schema = {"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}
_NULLABLE_UUID: Schema = {"type": ["string", "null"], "format": "uuid"}
DISK_CONFIG: Schema = {"type": "string", "enum": ["AUTO", "MANUAL"]}
IPV4: Schema = {"type": "string", "format": "ipv4"}
IPV6: Schema = {"type": "string", "format": "ipv6"}
USER_DATA: Schema = {"type": "string", "format": "base64", "maxLength": 65535}
PERSONALITY: Schema = {
    "type": "array",
    "items": v.obj(
        {"path": {"type": "string", "minLength": 1}, "contents": {"type": "string", "format": "base64"}},
        ("path", "contents"),
    ),
}
_SHORT: Schema = {"type": "string", "maxLength": 255}

_SERVER_UUIDS: Schema = {"anyOf": [v.UUID, {"type": "array", "items": v.UUID}]}
# Hints that no filter knows are kept and passed on.
_HINTS: Schema = {
    "type": "object",
    "properties": {"group": _SERVER_UUIDS, "same_host": _SERVER_UUIDS, "different_host": _SERVER_UUIDS},
    "additionalProperties": True,
}

_NETWORK: Schema = {"fixed_ip": _IP, "port": _NULLABLE_UUID, "uuid": {"type": "string", "maxLength": 255}}
_BLOCK_DEVICE: Schema = {
    "source_type": {"type": "string", "enum": ["volume", "image", "snapshot", "blank"]},
    "destination_type": {"type": "string", "enum": ["local", "volume"]},
    "uuid": {"type": ["string", "null"], "maxLength": 255},
    "image_id": _SHORT,
    "volume_id": _SHORT,
    "snapshot_id": _SHORT,
    "volume_size": {"type": ["integer", "string", "null"]},
    "device_name": {"type": ["string", "null"], "maxLength": 255},
    "virtual_name": _SHORT,
    "guest_format": {"type": ["string", "null"], "maxLength": 255},
    "device_type": {"type": ["string", "null"], "maxLength": 255},
    "disk_bus": {"type": ["string", "null"], "maxLength": 255},
    "boot_index": {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]{1,10}$"},
    "delete_on_termination": v.BOOLEAN,
    "no_device": {},
    "connection_info": _SHORT,
}
_LEGACY_BLOCK_DEVICE = {
    key: _BLOCK_DEVICE[key]
    for key in (
        "virtual_name", "volume_id", "snapshot_id", "volume_size", "device_name", "delete_on_termination",
        "no_device", "connection_info",
    )
}  # fmt: skip

_CREATE: Schema = {
    "name": v.NAME,
    "imageRef": {"type": "string", "anyOf": [{"format": "uuid"}, {"maxLength": 0}]},
    "flavorRef": {"type": ["string", "integer"], "minLength": 1, "maxLength": 255},
    "adminPass": {"type": "string", "maxLength": 255},
    "metadata": v.METADATA,
    "networks": {"type": "array", "items": v.obj(_NETWORK)},
    "OS-DCF:diskConfig": DISK_CONFIG,
    "accessIPv4": IPV4,
    "accessIPv6": IPV6,
    "personality": PERSONALITY,
    "availability_zone": v.NAME,
    "block_device_mapping": {"type": "array", "items": v.obj(_LEGACY_BLOCK_DEVICE)},
    "block_device_mapping_v2": {"type": "array", "items": v.obj(_BLOCK_DEVICE)},
    "config_drive": v.BOOLEAN,
    "key_name": v.NAME,
    "min_count": v.POSITIVE_INTEGER,
    "max_count": v.POSITIVE_INTEGER,
    "return_reservation_id": v.BOOLEAN,
    "security_groups": {"type": "array", "items": v.obj({"name": v.NAME})},
    "user_data": USER_DATA,
}


def _networks(uuid: Schema, tagged: bool) -> Schema:
    network = {**_NETWORK, "uuid": uuid} | ({"tag": TAG} if tagged else {})
    return {"oneOf": [{"type": "array", "items": v.obj(network)}, {"type": "string", "enum": ["none", "auto"]}]}


def _block_devices(**more: Schema) -> Schema:
    return {"type": "array", "items": v.obj({**_BLOCK_DEVICE, **more})}


_TAGGED_NETWORKS: Schema = {"type": "array", "items": v.obj({**_NETWORK, "tag": TAG})}
_219 = {**_CREATE, "description": v.DESCRIPTION}
_232 = {**_219, "networks": _TAGGED_NETWORKS, "block_device_mapping_v2": _block_devices(tag=TAG)}
_233 = {**_219, "networks": _TAGGED_NETWORKS}
_237 = {**_219, "networks": _networks(v.UUID, tagged=False)}
_242 = {
    **_237,
    "networks": _networks(v.UUID, tagged=True),
    "block_device_mapping_v2": _block_devices(tag=TAG),
}
_252 = {**_242, "tags": TAG_LIST}
_257 = {key: value for key, value in _252.items() if key != "personality"}
CERTIFICATES: Schema = {
    "type": ["array", "null"],
    "minItems": 1,
    "maxItems": 50,
    "uniqueItems": True,
    "items": {"type": "string", "minLength": 1},
}
_263 = {**_257, "trusted_image_certificates": CERTIFICATES}
_267 = {
    **_263,
    "block_device_mapping_v2": _block_devices(tag=TAG, volume_type={"type": ["string", "null"], "maxLength": 255}),
}
_274 = {**_267, "host": v.HOSTNAME, "hypervisor_hostname": v.HOSTNAME}
_290 = {**_274, "hostname": HOSTNAME}
_294 = {**_290, "hostname": FQDN}


def _create(properties: Schema, *required: str) -> Schema:
    return v.obj(
        {
            "server": v.obj(properties, ("name", "flavorRef", *required)),
            "os:scheduler_hints": _HINTS,
            "OS-SCH-HNT:scheduler_hints": _HINTS,
        },
        ("server",),
    )


CREATE = Versioned(
    {
        "2.1": _create(_CREATE),
        "2.19": _create(_219),
        "2.32": _create(_232),
        "2.33": _create(_233),
        "2.37": _create(_237, "networks"),
        "2.42": _create(_242, "networks"),
        "2.52": _create(_252, "networks"),
        "2.57": _create(_257, "networks"),
        "2.63": _create(_263, "networks"),
        "2.67": _create(_267, "networks"),
        "2.74": _create(_274, "networks"),
        "2.90": _create(_290, "networks"),
        "2.94": _create(_294, "networks"),
    }
)

_UPDATE: Schema = {
    "name": v.NAME,
    "OS-DCF:diskConfig": DISK_CONFIG,
    "accessIPv4": IPV4,
    "accessIPv6": IPV6,
}
_UPDATE_219 = {**_UPDATE, "description": v.DESCRIPTION}

UPDATE = Versioned(
    {
        "2.1": v.wrapped("server", _UPDATE),
        "2.19": v.wrapped("server", _UPDATE_219),
        "2.90": v.wrapped("server", {**_UPDATE_219, "hostname": HOSTNAME}),
        "2.94": v.wrapped("server", {**_UPDATE_219, "hostname": FQDN}),
        "2.104": v.wrapped("server", {**_UPDATE_219, "hostname": FQDN, "pinned_availability_zone": ZONE}),
    }
)

# --- lists ------------------------------------------------------------------------------------------------------------

#: Sort keys that are accepted -> the column that they mean.
SORT_COLUMNS = {
    "access_ip_v4": "access_ip_v4",
    "access_ip_v6": "access_ip_v6",
    "auto_disk_config": "disk_config",
    "availability_zone": "requested_zone",
    "config_drive": "config_drive",
    "created_at": "created_at",
    "display_description": "description",
    "display_name": "name",
    "host": "host",
    "hostname": "hostname",
    "image_ref": "image_ref",
    "instance_type_id": "flavorid",
    "key_name": "key_name",
    "launch_index": "launch_index",
    "launched_at": "launched_at",
    "locked": "locked_by",
    "locked_by": "locked_by",
    "node": "node",
    "power_state": "power_state",
    "project_id": "project_id",
    "root_device_name": "root_device_name",
    "task_state": "task_state",
    "terminated_at": "terminated_at",
    "updated_at": "updated_at",
    "user_id": "user_id",
    "uuid": "uuid",
    "vm_state": "vm_state",
}
#: Sort keys that are accepted and order nothing here: all servers have the same value.
_SORT_CONSTANTS = ("kernel_id", "progress", "ramdisk_id")
#: Accepted below 2.75, and ignored.
_SORT_IGNORED = (
    "architecture", "cell_name", "cleaned", "default_ephemeral_device", "default_swap_device", "deleted",
    "deleted_at", "disable_terminate", "ephemeral_gb", "ephemeral_key_uuid", "id", "key_data", "launched_on",
    "locked", "memory_mb", "os_type", "reservation_id", "root_gb", "shutdown_terminate", "user_data", "vcpus",
    "vm_mode",
)  # fmt: skip


def _sort_keys(*keys: str) -> Schema:
    return v.multi({"type": "string", "enum": sorted(set(keys))})


_ANY_SORT_KEYS = _sort_keys(*SORT_COLUMNS, *_SORT_CONSTANTS, *_SORT_IGNORED)
_FILTER = v.multi(v.QUERY_STRING)
_TIME = v.multi({"type": "string", "format": "date-time", "maxLength": 64})
_LIST: Schema = {
    **dict.fromkeys(
        (
            "user_id", "project_id", "tenant_id", "launch_index", "image_ref", "image", "kernel_id", "ramdisk_id",
            "hostname", "key_name", "power_state", "vm_state", "task_state", "host", "node", "flavor",
            "reservation_id", "launched_at", "terminated_at", "availability_zone", "name", "display_name",
            "description", "display_description", "locked_by", "uuid", "root_device_name", "config_drive",
            "access_ip_v4", "access_ip_v6", "auto_disk_config", "progress", "sort_dir", "all_tenants",
            "soft_deleted", "deleted", "status", "ip", "ip6", "created_at",
            # Refused by the code, which tells why.
            "block_device_mapping", "services", "metadata", "system_metadata", "info_cache", "security_groups",
            "pci_devices",
        ),
        _FILTER,
    ),
    "sort_key": _ANY_SORT_KEYS,
    "changes-since": _TIME,
    **v.PAGE,
}  # fmt: skip
_LIST_226 = {**_LIST, **dict.fromkeys(("tags", "tags-any", "not-tags", "not-tags-any"), _FILTER)}
_LIST_266 = {**_LIST_226, "changes-before": _TIME}
_LIST_273 = {**_LIST_266, "locked": _FILTER}
_LIST_275 = {**_LIST_273, "sort_key": _sort_keys(*SORT_COLUMNS, *_SORT_CONSTANTS)}

#: Fields that no list can be filtered by.
NO_FILTERS = (
    "block_device_mapping", "services", "metadata", "system_metadata", "info_cache", "security_groups", "pci_devices",
)  # fmt: skip

LIST = Versioned(
    {
        "2.1": v.query_of(_LIST),
        "2.26": v.query_of(_LIST_226),
        "2.66": v.query_of(_LIST_266),
        "2.73": v.query_of(_LIST_273),
        "2.75": v.query_of(_LIST_275, strict=True),
    }
)

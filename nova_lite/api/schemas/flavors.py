# SPDX-License-Identifier: Apache-2.0
"""Request schemas of flavors, their extra specs and their access lists, and which extra specs 2.86 knows."""

from __future__ import annotations

import re

from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import (
    BOOLEAN,
    NAME,
    NON_NEGATIVE_INTEGER,
    PAGE,
    POSITIVE_INTEGER,
    QUERY_STRING,
    Schema,
    multi,
    obj,
    query_of,
    wrapped,
)

_DESCRIPTION: Schema = {"type": ["string", "null"], "maxLength": 65535, "format": "description"}

_CREATE: Schema = {
    "name": NAME,
    "id": {
        "type": ["string", "number", "null"],
        "minLength": 1,
        "maxLength": 255,
        "pattern": r"^(?! )[a-zA-Z0-9. _-]+(?<! )$",
        "minimum": 0,
        "maximum": 10**15,
    },
    "ram": POSITIVE_INTEGER,
    "vcpus": POSITIVE_INTEGER,
    "disk": NON_NEGATIVE_INTEGER,
    "OS-FLV-EXT-DATA:ephemeral": NON_NEGATIVE_INTEGER,
    "swap": NON_NEGATIVE_INTEGER,
    "rxtx_factor": {
        "type": ["number", "string"],
        "pattern": r"^[0-9]{1,30}(\.[0-9]{1,30})?$",
        "exclusiveMinimum": 0,
        "maximum": 3.40282e38,
    },
    "os-flavor-access:is_public": BOOLEAN,
}
_REQUIRED = ("name", "ram", "vcpus", "disk")


def _without(name: str, properties: Schema) -> Schema:
    return {key: value for key, value in properties.items() if key != name}


CREATE = Versioned(
    {
        "2.1": wrapped("flavor", _CREATE, _REQUIRED),
        "2.55": wrapped("flavor", {**_CREATE, "description": _DESCRIPTION}, _REQUIRED),
        "2.102": wrapped("flavor", {**_without("rxtx_factor", _CREATE), "description": _DESCRIPTION}, _REQUIRED),
    }
)
UPDATE = wrapped("flavor", {"description": _DESCRIPTION}, ("description",))

_SEARCH: Schema = {
    **PAGE,
    **{name: multi({"type": "string"}) for name in ("is_public", "minRam", "minDisk", "sort_key", "sort_dir")},
}
_SEARCH_2102: Schema = {**_SEARCH, "name": multi(QUERY_STRING)}
LIST = Versioned(
    {
        "2.1": query_of(_SEARCH),
        "2.75": query_of(_SEARCH, strict=True),
        "2.102": query_of(_SEARCH_2102, strict=True),
    }
)

_SPEC_NAME = r"^[a-zA-Z0-9\-_:. ]{1,255}$"
_SPEC_VALUE: Schema = {"type": ["string", "number"], "maxLength": 255}
_SPECS: Schema = {"type": "object", "patternProperties": {_SPEC_NAME: _SPEC_VALUE}, "additionalProperties": False}

SET_EXTRA_SPECS = obj({"extra_specs": _SPECS}, ("extra_specs",))
SET_EXTRA_SPEC: Schema = {**_SPECS, "minProperties": 1, "maxProperties": 1}

_PROJECT = obj({"tenant": {"type": "string", "minLength": 1, "maxLength": 255}}, ("tenant",))
ACCESS: Schema = {
    **obj({"addTenantAccess": _PROJECT, "removeTenantAccess": _PROJECT}),
    "minProperties": 1,
    "maxProperties": 1,
}

# Namespaces in which a name that is not known is a mistake; names in others are the operator's own.
_GUARDED = frozenset(("hw", "quota", "os"))
_INTEGER = r"[0-9]+"
_BOOLEAN = r"(?i:true|false|yes|no|on|off|1|0|t|f|y|n)"
_KNOWN = [
    (re.compile(name), re.compile(value))
    for name, value in (
        (r"hw:boot_menu|hw:pmu|hw:tpm_version|hw:mem_encryption|hw:locked_memory|hw:emulator_threads_policy", r".*"),
        (r"hw:cpu_policy", r"dedicated|shared|mixed"),
        (r"hw:cpu_thread_policy", r"prefer|isolate|require"),
        (r"hw:(cpu_(max_)?(sockets|cores|threads)|numa_nodes|serial_port_count|watchdog_.*)", r".*"),
        (r"hw:numa_(cpus|mem)\.[0-9]+|hw:cpu_dedicated_mask|hw:cpu_realtime_mask|hw:pci_numa_affinity_policy", r".+"),
        (r"hw:cpu_realtime|hw:hide_hypervisor_id|hw:vif_multiqueue_enabled|hw:virtio_packed_ring", _BOOLEAN),
        (r"hw:mem_page_size", r"small|large|any|[0-9]+([kKMG]i?[bB]?)?"),
        (r"hw:(mem_|max(phys|virt)addr|tpm_|viommu_|sound_|usb_).*", r".+"),
        (r"hw:ephemeral_encryption.*|hw:dedicated.*", r".+"),
        (r"quota:(cpu|disk|vif|memory)_.*", r".+"),
        (r"os:(secure_boot|require_secure_boot)", r"optional|required|disabled|forbidden"),
    )
]


def unknown_extra_spec(name: str, value: str) -> str | None:
    """Tell what is wrong with an extra spec, None if nothing is (2.86)."""
    if name.split(":", 1)[0] not in _GUARDED or ":" not in name:
        return None
    for known, right in _KNOWN:
        if known.fullmatch(name):
            if right.fullmatch(value):
                return None
            return f"Validation failed; '{value}' is not a value of the extra spec '{name}'."
    return f"Validation failed; extra spec '{name}' does not appear to be a valid extra spec."

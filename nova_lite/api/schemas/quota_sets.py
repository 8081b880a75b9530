# SPDX-License-Identifier: Apache-2.0
"""Request schemas of quota sets and of the quota class, and which resources each version shows."""

from __future__ import annotations

from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import BOOLEAN, MAX_INT, Schema, multi, query_of, wrapped

_CORE = ("instances", "cores", "ram", "metadata_items", "key_pairs")
_GROUPS = ("server_groups", "server_group_members")
_NETWORK = ("floating_ips", "fixed_ips", "security_groups", "security_group_rules")
_FILES = ("injected_files", "injected_file_content_bytes", "injected_file_path_bytes")

_SETS = {
    "2.1": (*_CORE, *_GROUPS, *_FILES, *_NETWORK),
    "2.36": (*_CORE, *_GROUPS, *_FILES),
    "2.57": (*_CORE, *_GROUPS),
}
_CLASSES = {
    "2.1": (*_CORE, *_FILES, *_NETWORK),
    "2.50": (*_CORE, *_GROUPS, *_FILES),
    "2.57": (*_CORE, *_GROUPS),
}
RESOURCES = Versioned(_SETS)
CLASS_RESOURCES = Versioned(_CLASSES)

#: The API's names of resources that are called otherwise inside.
INNER_NAMES = {"injected_file_path_bytes": "injected_file_path_length"}

_LIMIT: Schema = {
    "type": ["integer", "string"],
    "pattern": "^-?[0-9]{1,10}$",
    "minimum": -1,
    "maximum": MAX_INT,
    "format": "bounded_integer",
}


def _update(wrapper: str, resources: tuple[str, ...], more: Schema) -> Schema:
    return wrapped(wrapper, {**dict.fromkeys(resources, _LIMIT), **more})


UPDATE = Versioned({since: _update("quota_set", names, {"force": BOOLEAN}) for since, names in _SETS.items()})
UPDATE_CLASS = Versioned({since: _update("quota_class_set", names, {}) for since, names in _CLASSES.items()})

_USER: Schema = {"user_id": multi({"type": "string", "maxLength": 255})}
QUERY = Versioned({"2.1": query_of(_USER), "2.75": query_of(_USER, strict=True)})

# SPDX-License-Identifier: Apache-2.0
"""What a guest is told of itself on its config drive, in OpenStack's format.

The versions are dates; cloud-init and its like look for the newest they know, or for "latest". One old enough for all
of them holds the same content.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from typing import Any

from nova_lite import exception
from nova_lite.network.driver import no_network_data
from nova_lite.objects.instance import Instance
from nova_lite.virt.driver import ConfigDrive

VERSIONS = ("2018-08-27", "latest")

_SEED_BYTES = 512


class MetadataDrive(ConfigDrive):
    """The config drive of one instance.

    :param network_data: as the network driver describes its interfaces.
    """

    def __init__(self, instance: Instance, network_data: dict[str, Any] | None = None) -> None:
        self._instance = instance
        self._network_data = network_data if network_data is not None else no_network_data()

    def files(self) -> dict[str, bytes]:
        """Return path below the drive's root -> content.

        :raises BuildFailed: the user data or a file are not base64.
        """
        content = {
            "meta_data.json": _json(self.meta_data()),
            "network_data.json": _json(self._network_data),
            "vendor_data.json": _json({}),
            "vendor_data2.json": _json({}),
        }
        if self._instance.user_data:
            content["user_data"] = _decoded(self._instance.user_data, "its user data are")
        injected = {
            f"openstack/content/{number:04}": _decoded(data, "a file that is injected into it is")
            for number, (_, data) in enumerate(self._instance.injected_files)
        }
        written = {f"openstack/{version}/{name}": data for version in VERSIONS for name, data in content.items()}
        return {**written, **injected}

    def meta_data(self) -> dict[str, Any]:
        """Return the content of meta_data.json."""
        instance = self._instance
        content: dict[str, Any] = {
            "uuid": instance.uuid,
            "name": instance.name,
            "hostname": instance.hostname,
            "launch_index": instance.launch_index,
            "availability_zone": instance.availability_zone,
            "project_id": instance.project_id,
            "meta": instance.metadata,
            "random_seed": base64.b64encode(os.urandom(_SEED_BYTES)).decode(),
            "devices": [
                {"type": "nic", "bus": "none", "address": "none", "mac": port.mac, "tags": [port.tag]}
                for port in instance.ports
                if port.tag
            ],
        }
        if instance.injected_files:
            content["files"] = [
                {"content_path": f"/content/{number:04}", "path": path}
                for number, (path, _) in enumerate(instance.injected_files)
            ]
        if instance.key_name and instance.key_data:
            content["public_keys"] = {instance.key_name: instance.key_data}
            content["keys"] = [{"name": instance.key_name, "type": "ssh", "data": instance.key_data}]
        return content


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _decoded(text: str, what: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise exception.BuildFailed(reason=f"{what} not base64.") from None

# SPDX-License-Identifier: Apache-2.0
"""How a cloud is reached, whatever it is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Login:
    """How the administrator of a cloud logs in at its Keystone, and what Tempest has to know of the cloud.

    hypervisor_type is what the cloud's hosts say they have, network the name of the one that servers are on, disk the
    content of an image that boots there, and its format.
    """

    auth_url: str
    user: str
    password: str
    project: str
    region: str
    hypervisor_type: str
    network: str
    disk: bytes
    disk_format: str

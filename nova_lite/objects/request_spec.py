# SPDX-License-Identifier: Apache-2.0
"""What one consumer asks of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field

from nova_lite.objects.flavor import Flavor
from nova_lite.objects.group import Group
from nova_lite.objects.resources import Resources


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """One server that wants a host.

    consumer is the instance's uuid; migration is the uuid of the move that the grant is for, or "" for a boot.
    image_properties and hints hold what the user gave, hints as lists of strings. excluded_hosts were tried and
    failed. requested_host and requested_node are the administrator's wish, and still have to pass every filter.
    """

    consumer: str
    project_id: str
    resources: Resources
    flavor: Flavor
    migration: str = ""
    group: Group | None = None
    availability_zone: str | None = None
    image_properties: dict[str, str] = field(default_factory=dict)
    hints: dict[str, list[str]] = field(default_factory=dict)
    requested_host: str | None = None
    requested_node: str | None = None
    excluded_hosts: tuple[str, ...] = ()
    request_id: str | None = None

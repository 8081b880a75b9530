# SPDX-License-Identifier: Apache-2.0
"""What is known of an image without its content."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Image:
    """size is in bytes, min_disk in GiB, min_ram in MiB. properties are the free ones (hw_*, os_*, img_*)."""

    id: str
    name: str | None = None
    status: str = "active"
    disk_format: str | None = None
    container_format: str | None = None
    size: int | None = None
    min_disk: int = 0
    min_ram: int = 0
    owner: str | None = None
    visibility: str = "public"
    checksum: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of an image's content once it is stored.

    Sizes are in bytes. checksum is MD5 and hash_value SHA-512, as Glance has them.
    """

    size: int
    checksum: str
    hash_value: str
    virtual_size: int

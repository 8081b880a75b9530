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
class CatalogueEntry:
    """An image as a catalogue lists it; the times are UTC, as 2026-01-31T12:00:00Z."""

    image: Image
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class CatalogueSearch:
    """Which images to list, the newest first.

    attributes are name, min_disk and min_ram, properties the free ones; the images have all of these values, and one of
    the statuses if any are given. changed_since is a time as in an entry. marker is the id of the last image that was
    listed before.
    """

    attributes: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    statuses: tuple[str, ...] = ()
    changed_since: str | None = None
    marker: str | None = None
    limit: int = 25


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of an image's content once it is stored.

    Sizes are in bytes. checksum is MD5 and hash_value SHA-512, as Glance has them.
    """

    size: int
    checksum: str
    hash_value: str
    virtual_size: int

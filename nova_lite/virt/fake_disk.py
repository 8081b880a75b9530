# SPDX-License-Identifier: Apache-2.0
"""An empty disk as a file of the format qcow2, for hypervisors that have no guests: small, whole, and of any size.

The layout is that of https://www.qemu.org/docs/master/interop/qcow2.html: a header, a table and a block of reference
counts, and a first-level table that maps nothing, each in a cluster of its own.
"""

from __future__ import annotations

import struct
from pathlib import Path

_CLUSTER_BITS = 16
_CLUSTER = 1 << _CLUSTER_BITS
_HEADER = struct.Struct(">4sIQIIQIIQQIIQQQQII")
_HEADER_BYTES = 104
# What one entry of the first-level table maps: a cluster of second-level entries of 8 bytes, each of them a cluster.
_MAPPED = (_CLUSTER // 8) << _CLUSTER_BITS


def write(path: Path, size: int) -> None:
    """Write a disk of so many bytes that is all zeros."""
    entries = max(1, -(-size // _MAPPED))
    table_clusters = -(-entries * 8 // _CLUSTER)
    counts, block, table = (number * _CLUSTER for number in (1, 2, 3))
    header = _HEADER.pack(
        b"QFI\xfb", 3, 0, 0, _CLUSTER_BITS, size, 0, entries, table, counts, 1, 0, 0, 0, 0, 0, 4, _HEADER_BYTES
    )
    with path.open("wb") as file:
        file.write(header)
        file.seek(counts)
        file.write(struct.pack(">Q", block))
        file.seek(block)
        file.write(struct.pack(">H", 1) * (3 + table_clusters))
        file.truncate(table + table_clusters * _CLUSTER)

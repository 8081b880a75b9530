# SPDX-License-Identifier: Apache-2.0
"""Rows for people: columns as wide as they need to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def render(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay out a header and rows in columns; None is shown as a dash."""
    cells = [list(header), *(["-" if value is None else str(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )

# SPDX-License-Identifier: Apache-2.0
"""Why there is no valid host, in a sentence that the owner of the server reads."""

from __future__ import annotations

from collections.abc import Sequence


def sentence(total: int, turned_away: Sequence[tuple[int, str]]) -> str:
    """Put the counts together.

    :param total: hosts that were considered.
    :param turned_away: how many hosts each filter turned away of those that the filters before it had left, with its
        explanation; filters that turned none away are left out.
    """
    if not total:
        return "No valid host was found. There is no compute host at all."
    parts = [f"{count} {text}" for count, text in turned_away]
    return f"No valid host was found. Of {total} host{'s' * (total > 1)}: {'; '.join(parts)}."

# SPDX-License-Identifier: Apache-2.0
"""The line that says how long a host is up."""

from __future__ import annotations

import re

import pytest

from nova_lite.compute import uptime


@pytest.mark.parametrize(
    ("seconds", "since"),
    [
        (59, "0 min"),
        (3599, "59 min"),
        (3600, " 1:00"),
        (86400 + 60, "1 day, 1 min"),
        (93 * 86400 + 66300, "93 days, 18:25"),
    ],
)
def test_the_time_is_told_as_uptime_does(seconds: int, since: str) -> None:
    assert uptime.describe("08:32:11", seconds, (0.2, 0.12, 0.14)) == (
        f" 08:32:11 up {since},  load average: 0.20, 0.12, 0.14"
    )


def test_this_machine_has_one() -> None:
    assert re.fullmatch(r" \d\d:\d\d:\d\d up .+,  load average: [\d.]+, [\d.]+, [\d.]+", uptime.line())

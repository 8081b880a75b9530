# SPDX-License-Identifier: Apache-2.0
"""How long a host has been up and how busy it is, in the words of uptime(1), which is what the API has always shown."""

from __future__ import annotations

import os
import time
from pathlib import Path

_UPTIME = Path("/proc/uptime")


def line() -> str:
    """Return the line for this machine: the time, how long it is up, and its load over 1, 5 and 15 minutes."""
    seconds = float(_UPTIME.read_text().split()[0])
    return describe(time.strftime("%H:%M:%S"), int(seconds), os.getloadavg())


def describe(clock: str, seconds: int, load: tuple[float, float, float]) -> str:
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    since = f"{hours:2d}:{minutes:02d}" if hours else f"{minutes} min"
    if days:
        since = f"{days} day{'s' if days > 1 else ''}, {since}"
    return f" {clock} up {since},  load average: {', '.join(f'{one:.2f}' for one in load)}"

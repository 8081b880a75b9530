# SPDX-License-Identifier: Apache-2.0
"""What processes and the machine use, from /proc, and what the figures were measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_LIBRARIES = ("SQLAlchemy", "PyMySQL", "oslo.messaging", "falcon", "cheroot", "numpy")


def cpu_seconds(sessions: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """Return the CPU seconds, user and system, that the processes of these sessions have used, by name.

    :param sessions: name -> ids of sessions; whatever a session's leader has started belongs to it.
    """
    used = dict.fromkeys(sessions, 0.0)
    names = {session: name for name, ids in sessions.items() for session in ids}
    for entry in Path("/proc").iterdir():
        fields = _stat(entry) if entry.name.isdecimal() else None
        if fields and int(fields[3]) in names:
            # The process itself and its children that have ended.
            used[names[int(fields[3])]] += sum(map(int, fields[11:15])) / _TICKS
    return used


def _stat(process: Path) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the third (state) on; None if the process is gone."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def busy_seconds() -> float:
    """Return the CPU seconds that the whole machine has worked since it started."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / _TICKS


def description() -> dict[str, str]:
    """Say what the figures were measured on."""
    processors = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)
    memory = Path("/proc/meminfo").read_text().split()[1]
    return {
        "processor": f"{os.cpu_count()} x {processors[0].partition(':')[2].strip() if processors else 'unknown'}",
        "memory": f"{int(memory) // 1048576} GiB",
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": versions,
        "load average at the start": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }

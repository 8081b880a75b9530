# SPDX-License-Identifier: Apache-2.0
"""qemu-img as a subprocess in bounds: images come from users, and a hostile one must not eat the host."""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LOG = logging.getLogger(__name__)

ADDRESS_SPACE = 1 << 30  # bytes; what qemu-img needs at most for an honest image, and what Nova allows it
CPU_SECONDS = 30
TIMEOUT = 60.0


def limited(cpu_seconds: int = CPU_SECONDS) -> tuple[str, ...]:
    """Return what goes before a command to bound it."""
    return ("prlimit", f"--as={ADDRESS_SPACE}", f"--cpu={cpu_seconds}", "--core=0", "--")


LIMITED = limited()


class QemuImgError(Exception):
    """qemu-img ended with an error, or was ended at its limits; the message is its own."""


def run(arguments: Sequence[str | Path], timeout: float = TIMEOUT, cpu_seconds: int = CPU_SECONDS) -> str:
    """Run qemu-img with these arguments, and return what it prints.

    The limits are set by prlimit(1): Python's preexec_fn is not safe in a process with threads.

    :param timeout: seconds that it may take; cpu_seconds those of the processor.
    :raises QemuImgError: it did not succeed, or there is no qemu-img.
    """
    try:
        done = subprocess.run(
            [*limited(cpu_seconds), "qemu-img", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise QemuImgError(f"qemu-img {arguments[0]} took longer than {timeout:g} s") from None
    except FileNotFoundError:
        raise QemuImgError("prlimit is not installed; install the package util-linux") from None
    if done.returncode == 127:
        raise QemuImgError("qemu-img is not installed; install the package qemu-utils")
    if done.returncode != 0:
        LOG.debug("qemu-img %s exited with %d: %s", arguments[0], done.returncode, done.stderr)
        lines = done.stderr.strip().splitlines()
        raise QemuImgError(lines[-1] if lines else f"qemu-img {arguments[0]} was ended at its limits")
    return done.stdout


def info(path: Path, disk_format: str) -> dict[str, Any]:
    """Return what ``qemu-img info`` says of an image that is opened as this format and no other."""
    # -U: a guest may be writing to an overlay of it.
    answer = json.loads(run(["info", "-U", "--output=json", "-f", disk_format, path]))
    if not isinstance(answer, dict):
        raise QemuImgError("qemu-img info answered something else than an object")
    return answer

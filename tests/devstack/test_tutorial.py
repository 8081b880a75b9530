# SPDX-License-Identifier: Apache-2.0
"""The tutorial says what happens: all its commands are run, and print what the page shows.

With NOVA_LITE_WRITE_TUTORIAL=1 the page is given what they print now.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.page import Command, Shell, play, written
from tests.fixtures.stack import TOP, Stack

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]

PAGE = TOP / "doc" / "source" / "tutorial.rst"

# What may differ from run to run, and what stands for it.
_VARYING = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"\d+\.\d+\.\d+\.\d+(/\d+)?", "ADDRESS"),
    (r"(?m)^(\[ ?\d+/\d+\] .*?) +[\d.]+ s( .*)?$", r"\1 TIME"),
    (r"\b\d{4}-\d\d-\d\d[T ][\d:.]+\b", "DATE"),
    (r"http://ADDRESS:\d+", "URL"),
    (r"\b\d{3,}\b", "NUMBER"),
    (r"[-+=]{3,}", "---"),
    (r" +", " "),
    (r"(?m) +$", ""),
    (r"(?m)^(Kept in \S+:).*$", r"\1 ..."),
)


def without_what_varies(text: str) -> str:
    for pattern, replacement in _VARYING:
        text = re.sub(pattern, replacement, text)
    return text.strip()


def as_on_the_page(stack: Stack, text: str) -> str:
    """Return what was printed as a stack with the usual settings prints it."""
    return text.replace(str(stack.dest), "/opt/nova-lite-devstack").replace(f"{stack.prefix}-", "nl-")


def test_all_commands_print_what_the_page_shows(
    make_stack: Callable[..., Stack], openstack_home: Path, tmp_path: Path
) -> None:
    stack = make_stack(
        ENABLE_KEYSTONE="True", OPENSTACK_VENV=str(openstack_home), GUEST_IMAGES="nano tiny", OFFLINE="False"
    )
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    environment = {"NOVA_LITE_LOCAL_CONF": str(stack.local_conf), "HOME": str(home), "COLUMNS": "110"}
    shell = Shell(TOP, environment)
    page = PAGE.read_text()
    writing = os.environ.get("NOVA_LITE_WRITE_TUTORIAL") == "1"

    def compare(command: Command, text: str, status: int) -> None:
        assert status == 0, f"{command.text}\n{text}\n{stack.log()}"
        if not writing:
            shown = without_what_varies("\n".join(command.shown))
            assert without_what_varies(as_on_the_page(stack, text)) == shown, command.text

    printed = play(page, shell, compare)
    shell.close()
    if writing:
        PAGE.write_text(written(page, [as_on_the_page(stack, text) for text in printed]))

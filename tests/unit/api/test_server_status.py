# SPDX-License-Identifier: Apache-2.0
"""The status of servers, there and back."""

from __future__ import annotations

import itertools

import pytest

from nova_lite.api.server_status import matches_of, status_of

TASKS = (None, "scheduling", "rebooting", "rebooting_hard", "powering-off", "migrating", "resize_prep", "deleting")
VM_STATES = ("active", "building", "stopped", "paused", "error", "deleted", "resized", "suspended")


@pytest.mark.parametrize(
    ("vm_state", "task_state", "status"),
    [
        ("building", "scheduling", "BUILD"),
        ("active", None, "ACTIVE"),
        ("active", "powering-off", "ACTIVE"),
        ("active", "rebooting", "REBOOT"),
        ("active", "rebooting_hard", "HARD_REBOOT"),
        ("stopped", "rebooting_hard", "SHUTOFF"),
        ("active", "resize_prep", "RESIZE"),
        ("stopped", "resize_migrating", "RESIZE"),
        ("active", "resize_finish", "RESIZE"),
        ("resized", None, "VERIFY_RESIZE"),
        ("resized", "resize_reverting", "REVERT_RESIZE"),
        ("active", "migrating", "MIGRATING"),
        ("paused", "migrating", "MIGRATING"),
        ("active", "rebuilding", "REBUILD"),
        ("stopped", "rebuilding", "REBUILD"),
        ("error", "rebuilding", "REBUILD"),
        ("error", None, "ERROR"),
        ("what", None, "UNKNOWN"),
    ],
)
def test_status(vm_state: str, task_state: str | None, status: str) -> None:
    assert status_of(vm_state, task_state) == status


def test_a_deleted_server_is_deleted_whatever_its_state() -> None:
    assert status_of("active", None, deleted=5) == "DELETED"


@pytest.mark.parametrize(("vm_state", "task_state"), list(itertools.product(VM_STATES, TASKS)))
def test_a_status_matches_the_states_that_it_is_made_of_and_no_others(vm_state: str, task_state: str | None) -> None:
    shown = status_of(vm_state, task_state)
    for status in {status_of(*states) for states in itertools.product(VM_STATES, TASKS)}:
        matched = any(
            match.vm_state == vm_state
            and (
                task_state in match.task_states
                if match.task_states is not None
                else task_state not in match.except_tasks
            )
            for match in matches_of(status.lower())
        )
        assert matched == (status == shown)


def test_an_unknown_status_matches_nothing() -> None:
    assert matches_of("nonsense") == []

# SPDX-License-Identifier: Apache-2.0
"""The cloud of --hypervisor qemu: two hosts with real guests, made by devstack/stack.sh (as root)."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.fixtures import guest, openstack, stack
from tests.fixtures.programs import ProgramMissingError
from tests.tempest.login import Login


@contextlib.contextmanager
def running(directory: Path) -> Iterator[Login]:
    """Make the cloud, and take it down at the end.

    :raises ProgramMissingError: this machine lacks something that it needs.
    """
    lacks = stack.missing()
    if lacks:
        raise ProgramMissingError("; ".join(lacks))
    made = stack.Stack(ENABLE_KEYSTONE="True", OPENSTACK_VENV=str(openstack.environment()), HOSTS="2")
    try:
        made.must("stack.sh")
        yield Login(
            f"http://{made.service_host}:{made.chosen('KEYSTONE_PORT')}/v3",
            "admin",
            made.chosen("ADMIN_PASSWORD"),
            "admin",
            "RegionOne",
            hypervisor_type="QEMU",
            network="default",
            disk=_nano(),
            disk_format="qcow2",
        )
    finally:
        made.remove()


def _nano() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        return guest.build_nano_guest(Path(directory)).read_bytes()

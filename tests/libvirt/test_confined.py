# SPDX-License-Identifier: Apache-2.0
"""A compute with no more rights than its systemd unit gives it, beside a libvirt that runs QEMU as another user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.libvirtd import Libvirtd
from tests.fixtures.production import ETC

pytestmark = pytest.mark.long

_NOBODY = 65534
# A group of nobody's: those who may speak to libvirt.
_LIBVIRT = 64999


class PackagedLibvirtd(Libvirtd):
    """A host as packages set it up: QEMU is another user's, whom libvirt gives the disks while it needs them."""

    def _write_state(self) -> None:
        super()._write_state()
        qemu = self.directory / "etc" / "qemu.conf"
        text = qemu.read_text().replace('"root"', '"libvirt-qemu"')
        text = text.replace("dynamic_ownership = 0", "dynamic_ownership = 1")
        qemu.write_text(text.replace("remember_owner = 0", "remember_owner = 1"))
        daemon = self.directory / "etc" / "libvirtd.conf"
        text = daemon.read_text().replace('unix_sock_rw_perms = "0700"', 'unix_sock_rw_perms = "0770"')
        daemon.write_text(f'{text}unix_sock_group = "+{_LIBVIRT}"\n')


@pytest.fixture
def host(libvirtd: Libvirtd) -> Iterator[PackagedLibvirtd]:
    """Beside the tests' other one, without which there is none."""
    base = Path(tempfile.mkdtemp(prefix="nova-lite-"))
    base.chmod(0o755)
    made = PackagedLibvirtd(base / "host", "packaged")
    try:
        made.start()
        made.directory.chmod(0o755)
        yield made
    finally:
        made.stop()
        shutil.rmtree(base)


def test_a_guest_lives_with_the_rights_of_the_unit(host: PackagedLibvirtd, image: Path) -> None:
    state, disk = host.directory.parent / "state", host.directory.parent / "image"
    state.mkdir()
    os.chown(state, _NOBODY, _NOBODY)
    shutil.copy(image, disk)
    unit = (ETC / "systemd" / "nova-lite-compute.service").read_text()
    (given,) = re.findall(r"^AmbientCapabilities=(.*)$", unit, re.MULTILINE)
    rights = ",".join(["-all", *(f"+{name.removeprefix('CAP_').lower()}" for name in given.split())])
    confined = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", f"--groups={_LIBVIRT}", "--no-new-privs"]
    confined += [f"--inh-caps={rights}", f"--ambient-caps={rights}", f"--bounding-set={rights}"]

    done = subprocess.run(
        [*confined, sys.executable, "-m", "tests.libvirt.confined", str(state), host.uri, str(disk)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=240,
        check=False,
    )

    steps = done.stdout.splitlines()
    assert (done.returncode, steps[-2:]) == (0, ["destroy", "left: []"]), done.stdout + done.stderr[-3000:]

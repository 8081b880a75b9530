# SPDX-License-Identifier: Apache-2.0
"""What local.conf may say: every refusal names the setting, and comes before anything is made."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.stack import TOP

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="stack.sh is for root")


def say(tmp_path: Path, local_conf: str, command: str = "") -> subprocess.CompletedProcess[str]:
    """Read a local.conf as the scripts do, and then run a command of theirs."""
    path = tmp_path / "local.conf"
    path.write_text(local_conf)
    script = f"set -euo pipefail; TOP={TOP}; source {TOP}/devstack/lib/parts.sh; read_settings; {command}"
    environment = {**os.environ, "NOVA_LITE_LOCAL_CONF": str(path)}
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("HOST=3", "HOST"),
        ("HOSTS=many", "HOSTS=many"),
        ("HOSTS=0", "HOSTS=0"),
        ("VIRT_DRIVER=xen", "libvirt fake"),
        ("PREFIX=a-very-long-one", "PREFIX"),
        ("DEST=relative", "DEST=relative"),
        ("DEST=/run/stack", "/run"),
        ("ADMIN_PASSWORD='with space'", "ADMIN_PASSWORD"),
        ("MGMT_RANGE=10.0.0.1/24", "MGMT_RANGE"),
        ("MGMT_RANGE=10.0.0.0/28\nHOSTS=10", "no room for 10 hosts"),
        ("GUEST_IMAGES=windows", "windows"),
        ("RABBIT_PORT=99999", "RABBIT_PORT"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, line: str, named: str) -> None:
    done = say(tmp_path, f"[[local|localrc]]\n{line}\n")
    assert done.returncode == 1
    assert "error:" in done.stderr and named in done.stderr


def test_a_section_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    done = say(tmp_path, "[[post-config|$NOVA_CONF]]\n[DEFAULT]\ndebug = true\n")
    assert done.returncode == 1 and "$NOVA_CONF" in done.stderr


def test_the_environment_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTS", "17")
    done = say(tmp_path, "[[local|localrc]]\nPREFIX=abc\n", 'echo "$HOSTS $MGMT_BRIDGE"')
    assert done.stdout == "3 abc-mgmt\n"


def test_what_is_added_to_a_file_comes_last_and_only_there(tmp_path: Path) -> None:
    local_conf = (
        "[[local|localrc]]\nHOSTS=2\n"
        "[[post-config|$NOVA_LITE_CONF]]\n[scheduler]\ngrant_lifetime = 77\n"
        "[[post-config|$NOVA_LITE_CPU_CONF]]\n# nothing but a comment\n"
    )
    done = say(tmp_path, local_conf, "write_post_config NOVA_LITE_CONF; echo --; write_post_config NOVA_LITE_CPU_CONF")
    first, second = done.stdout.split("--\n")
    assert first.endswith("[scheduler]\ngrant_lifetime = 77\n") and "HOSTS" not in first
    assert second == ""


def test_the_sample_shows_every_setting_with_its_default(tmp_path: Path) -> None:
    sample = (TOP / "devstack/local.conf.sample").read_text()
    shown = dict(re.findall(r"^#([A-Z_]+)=(.*)$", sample, re.MULTILINE))
    dump = 'for name in "${!SETTINGS[@]}"; do printf "%s=%s\\n" "$name" "${SETTINGS[$name]}"; done'
    defaults = dict(line.split("=", 1) for line in say(tmp_path, "", dump).stdout.splitlines())
    assert set(shown) == set(defaults)
    # Ports and the address follow from others when they are not set.
    for name, value in defaults.items():
        assert value == shown[name].strip('"') or not value, name

# SPDX-License-Identifier: Apache-2.0
"""The api as a module that a WSGI server imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_it_does_not_come_up_without_a_schema_and_says_what_to_do(tmp_path: Path) -> None:
    first, second = tmp_path / "nova-lite.conf", tmp_path / "secrets.conf"
    first.write_text("[DEFAULT]\ntransport_url = fake://\n[database]\nconnection = sqlite:////nowhere/at/all\n")
    second.write_text(f"[database]\nconnection = sqlite:///{tmp_path}/cloud.sqlite\n")

    done = subprocess.run(
        [str(Path(sys.executable).with_name("gunicorn")), "--check-config", "nova_lite.api.wsgi:application"],
        capture_output=True,
        text=True,
        env={**os.environ, "OS_NOVA_LITE_CONFIG_FILES": f"{first};{second}"},
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert "no schema of nova_lite yet: run nova-lite-manage db sync" in done.stderr.splitlines()[-1]

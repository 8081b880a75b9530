# SPDX-License-Identifier: Apache-2.0
"""Logs in files, rotated by logrotate itself while a process writes to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures import programs
from tests.fixtures.production import ETC

# Logs each line of its standard input as a service logs, and answers that it has.
_SERVICE = """\
import sys
from oslo_config import cfg
from oslo_log import log
log.register_options(cfg.CONF)
cfg.CONF(["--log-file", sys.argv[1]], project="nova-lite", default_config_files=[])
log.setup(cfg.CONF, "nova_lite")
for line in sys.stdin:
    log.getLogger("nova_lite").warning(line.strip())
    print(flush=True)
"""


def test_a_service_goes_on_in_the_log_that_was_rotated(tmp_path: Path) -> None:
    try:
        logrotate = programs.find("logrotate", "logrotate")
    except programs.ProgramMissingError as missing:
        pytest.skip(str(missing))
    logs = tmp_path / "logs"
    logs.mkdir(mode=0o750)
    text = (ETC / "logrotate.d" / "nova-lite").read_text()
    text = text.replace("/var/log/nova-lite", str(logs))
    text = text.replace("su nova-lite nova-lite", f"su {logs.owner()} {logs.group()}")
    (tmp_path / "logrotate.conf").write_text(text)
    log = logs / "nova-lite-api.log"

    with subprocess.Popen(
        [sys.executable, "-c", _SERVICE, str(log)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as service:
        assert service.stdin and service.stdout
        for words in ("before", "after"):
            service.stdin.write(f"{words}\n")
            service.stdin.flush()
            service.stdout.readline()
            if words == "before":
                state = str(tmp_path / "state")
                subprocess.run([logrotate, "--force", "--state", state, str(tmp_path / "logrotate.conf")], check=True)
        service.stdin.close()

    assert "before" in (logs / "nova-lite-api.log.1").read_text()
    assert log.read_text().strip("\0").endswith("after\n") and "before" not in log.read_text()

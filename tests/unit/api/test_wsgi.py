# SPDX-License-Identifier: Apache-2.0
"""The api as a module that a WSGI server imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.fixtures import programs
from tests.fixtures.client import Client
from tests.fixtures.cloud import PASSWORD
from tests.fixtures.ports import free_port
from tests.fixtures.production import ETC


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


@pytest.mark.long
def test_uwsgi_serves_it_as_the_shipped_configuration_says(tmp_path: Path) -> None:
    uwsgi = Path(sys.executable).with_name("uwsgi")
    if not uwsgi.exists():
        pytest.skip("uWSGI is missing: pip install pyuwsgi")
    port = free_port()
    text = (ETC / "nova-lite" / "uwsgi.ini").read_text()
    assert "0.0.0.0:8774" in text and "processes = 4" in text
    ini = tmp_path / "uwsgi.ini"
    ini.write_text(text.replace("0.0.0.0:8774", f"127.0.0.1:{port}").replace("processes = 4", "processes = 2"))
    config = tmp_path / "nova-lite.conf"
    config.write_text(
        f"[DEFAULT]\nstate_path = {tmp_path}\ntransport_url = fake://\n[database]\nconnection = sqlite:///{tmp_path}/db\n"
    )
    _manage(config, "db", "sync")
    _manage(config, "user", "add", "admin", "--role", "admin")
    log = tmp_path / "uwsgi.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", str(uwsgi), "--ini", str(ini)],
            stdout=output,
            stderr=output,
            env={**os.environ, "OS_NOVA_LITE_CONFIG_FILES": str(config)},
        )
    url = f"http://127.0.0.1:{port}"
    try:
        programs.wait_until_ready(process, lambda: _answers(url), log, 120)
        client = Client(url, "admin", PASSWORD)
        client.flavor("small")
        assert [each["name"] for each in client.get("/flavors")["flavors"]] == ["small"]
    finally:
        programs.end(process, 60)
    assert process.returncode == 0, log.read_text()[-2000:]


def _manage(config: Path, *arguments: str) -> None:
    program = str(Path(sys.executable).with_name("nova-lite-manage"))
    environment = {**os.environ, "NOVA_LITE_PASSWORD": PASSWORD}
    subprocess.run([program, "--config-file", str(config), *arguments], check=True, env=environment)


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=10).status_code == 200
    except requests.RequestException:
        return False

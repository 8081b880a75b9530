# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage, run as an operator runs it: what is printed, and what the exit status is."""

from __future__ import annotations

import io
import json
import logging
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nova_lite import conf
from nova_lite.api import microversion
from nova_lite.cmd import manage as command


@dataclass(frozen=True)
class Result:
    returncode: int
    stdout: str
    stderr: str


Manage = Callable[..., Result]


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "nova-lite.conf"
    path.write_text(f"[DEFAULT]\nhost = here\nstate_path = {tmp_path}/state\ntransport_url = fake://\n")
    return path


@pytest.fixture
def manage(config_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Manage]:
    """Run one command as a new process would."""

    def run(*arguments: str, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        try:
            status = command.run([*arguments, "--config-file", str(config_file)])
        except SystemExit as end:  # argparse' way to refuse
            status = int(end.code or 0)
        conf.CONF.reset()
        return Result(status, *capsys.readouterr())

    monkeypatch.delenv("NOVA_LITE_PASSWORD", raising=False)
    yield run
    conf.CONF.reset()
    logging.disable(logging.NOTSET)


def test_the_command_is_there(config_file: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "nova_lite.cmd.manage", "db", "version", "--config-file", str(config_file)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "none (expected: 0007)\n", "")


def _error(result: Result) -> str:
    """Return the one line of an error."""
    assert (result.returncode, result.stderr.count("\n")) == (1, 1), result.stderr
    return result.stderr


class TestDb:
    def test_sync_makes_the_schema_and_may_be_repeated(self, manage: Manage) -> None:
        assert manage("db", "version").stdout == "none (expected: 0007)\n"
        assert manage("db", "sync").stdout == "The schema has version 0007 (before: none).\n"
        assert manage("db", "sync").stdout == "The schema has version 0007 already.\n"
        assert manage("db", "version").stdout == "0007 (expected: 0007)\n"

    def test_a_database_that_does_not_answer_is_one_line_without_the_password(
        self, manage: Manage, config_file: Path
    ) -> None:
        with config_file.open("a") as file:
            file.write("[database]\nconnection = mysql+pymysql://me:secret@127.0.0.1:1/cloud\n")
        line = _error(manage("db", "sync"))
        assert "The database cannot be reached" in line
        assert "secret" not in line


class TestUser:
    def test_password_from_standard_input(self, manage: Manage, tmp_path: Path) -> None:
        result = manage("user", "add", "ann", "--project", "lab", "--role", "admin", stdin="secret\n")
        assert result.stdout == "User ann has the roles admin on project lab.\n"
        listed = manage("user", "list").stdout
        assert listed.splitlines()[1].split()[:3] == ["ann", "lab", "admin"]
        users = tmp_path / "state" / "users.yaml"
        assert stat.S_IMODE(users.stat().st_mode) == 0o600
        assert "secret" not in users.read_text() + listed

    def test_password_from_the_environment(self, manage: Manage, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NOVA_LITE_PASSWORD", "secret")
        assert manage("user", "add", "ann").returncode == 0

    def test_no_password_at_all(self, manage: Manage) -> None:
        assert "No password: set NOVA_LITE_PASSWORD" in _error(manage("user", "add", "ann"))

    def test_removed_users_are_gone(self, manage: Manage) -> None:
        manage("user", "add", "ann", stdin="secret\n")
        assert manage("user", "remove", "ann").stdout == "User ann is removed.\n"
        assert len(manage("user", "list").stdout.splitlines()) == 1
        assert "There is no user ann." in _error(manage("user", "remove", "ann"))


class TestService:
    def test_list_needs_a_schema(self, manage: Manage) -> None:
        assert "run nova-lite-manage db sync" in _error(manage("service", "list"))

    def test_list_of_a_new_cloud_is_empty(self, manage: Manage) -> None:
        manage("db", "sync")
        assert manage("service", "list").stdout == "binary  host  status  state  last seen  reason\n"


class TestFlavor:
    def test_create(self, manage: Manage) -> None:
        manage("db", "sync")
        size = ("--ram", "64", "--disk", "1", "--vcpus", "1")
        assert manage("flavor", "create", "m1.tiny", "--id", "1", *size).stdout == "Flavor m1.tiny has the id 1.\n"
        assert "already exists" in _error(manage("flavor", "create", "m1.tiny", *size))
        assert manage("flavor", "create", "m1.tiny", *size, "--exist-ok").returncode == 0

    def test_sizes_are_checked(self, manage: Manage) -> None:
        result = manage("flavor", "create", "m1.tiny", "--ram", "-1", "--disk", "1", "--vcpus", "1")
        assert result.returncode == 2
        assert "argument --ram: '-1' is not a whole number of at least 1" in result.stderr


class TestConfigCheck:
    def test_good(self, manage: Manage, config_file: Path) -> None:
        result = manage("config", "check")
        assert (result.returncode, result.stdout) == (0, f"No problem found in {config_file}.\n"), result.stderr

    @pytest.mark.parametrize(
        ("lines", "problem"),
        [
            ("[scheduler]\nworker = 3\n", "[scheduler] has no option worker; is workers meant?"),
            ("[schedular]\nworkers = 3\n", "there is no group [schedular]; is scheduler meant?"),
            ("[scheduler]\nworkers = 0\n", "[scheduler] workers: "),
            ("[scheduler]\nenabled_filters = luck\n", "luck is not installed; there are "),
            ("[compute]\ndriver = vmware\n", "[compute] driver: vmware is not installed; there are fake, libvirt"),
        ],
    )
    def test_bad(self, manage: Manage, config_file: Path, lines: str, problem: str) -> None:
        with config_file.open("a") as file:
            file.write(lines)
        result = manage("config", "check")
        assert problem in result.stdout
        assert (result.returncode, result.stderr.splitlines()[-1]) == (1, "nova-lite-manage: error: 1 problem found.")

    def test_services_that_are_alive_must_not_count_as_down(self, manage: Manage, config_file: Path) -> None:
        config_file.write_text(config_file.read_text() + "service_down_time = 5\n")
        assert "services that are alive would count as down" in manage("config", "check").stdout

    def test_sqlite_does_not_serve_many_processes(self, manage: Manage, config_file: Path) -> None:
        database = "[database]\nconnection = sqlite:////var/lib/nova-lite/cloud.sqlite\n"
        config_file.write_text(config_file.read_text().replace("fake://", "rabbit://") + database)
        assert "SQLite, which is for a cloud in one process" in manage("config", "check").stdout

    def test_a_compute_host_has_no_login_at_the_database(self, manage: Manage, config_file: Path) -> None:
        config_file.write_text(config_file.read_text().replace("fake://", "rabbit://"))
        result = manage("config", "check")
        assert (result.returncode, result.stderr) == (0, "")
        assert "is right on a compute host and nowhere else" in result.stdout

    def test_a_file_that_is_not_there(self, manage: Manage, config_file: Path) -> None:
        config_file.unlink()
        assert "Failed to find some config files" in _error(manage("config", "check"))


def test_openapi_describes_a_microversion(manage: Manage, tmp_path: Path) -> None:
    shown = manage("openapi", "--version", "2.53")
    written = manage("openapi", "--output", str(tmp_path / "api.json"))

    assert json.loads(shown.stdout)["info"]["version"] == "2.53"
    assert (shown.returncode, written.returncode) == (0, 0)
    assert json.loads((tmp_path / "api.json").read_text())["info"]["version"] == str(microversion.MAXIMUM)
    refused = manage("openapi", "--version", "2.9999")
    assert refused.returncode == 1
    assert "Give --version as 2.N" in refused.stderr

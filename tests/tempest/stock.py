# SPDX-License-Identifier: Apache-2.0
"""Stock Tempest: installed from the package index into a virtual environment of its own, configured, and run."""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.fixtures import openstack
from tests.tempest.login import Login
from tests.tempest.preparation import Prepared

REQUIREMENTS = ("tempest>=47,<48",)

_READER = Path(__file__).with_name("results_reader.py")


def environment() -> Path:
    """Return the virtual environment of Tempest, made if need be.

    :raises NotInstallableError: pip could not install it.
    """
    return openstack.environment("tempest", REQUIREMENTS)


@dataclass(frozen=True)
class Result:
    """How one test ended; words are the reason of a skip, or the traceback of a failure."""

    test: str
    status: str
    seconds: float
    words: str


def configure(directory: Path, login: Login, prepared: Prepared) -> Path:
    """Write Tempest's configuration and its accounts; return the path of the first."""
    accounts = [
        {
            "username": account.user,
            "password": account.password,
            "project_name": account.project,
            "user_domain_name": "Default",
            "project_domain_name": "Default",
            "roles": list(account.roles),
        }
        for account in prepared.accounts
    ]
    accounts_file = directory / "accounts.yaml"
    _write(accounts_file, yaml.safe_dump(accounts))
    file = configparser.RawConfigParser()
    file.read_dict(_settings(directory, accounts_file, login, prepared))
    path = directory / "tempest.conf"
    with open(path, "w", opener=_private) as stream:
        file.write(stream)
    return path


def _settings(directory: Path, accounts: Path, login: Login, prepared: Prepared) -> dict[str, dict[str, str]]:
    return {
        "DEFAULT": {"log_file": str(directory / "tempest.log")},
        "oslo_concurrency": {"lock_path": str(directory / "locks")},
        "auth": {
            "use_dynamic_credentials": "false",
            "test_accounts_file": str(accounts),
            "admin_username": login.user,
            "admin_password": login.password,
            "admin_project_name": login.project,
            "admin_domain_name": "Default",
            "tempest_roles": "member",
            "create_isolated_networks": "false",
        },
        "identity": {"uri_v3": login.auth_url, "auth_version": "v3", "region": login.region},
        "identity-feature-enabled": {"api_v2": "false", "api_v3": "true"},
        "service_available": {
            "nova": "true",
            "glance": "true",
            "neutron": "true",
            "cinder": "false",
            "swift": "false",
            "horizon": "false",
        },
        "compute": {
            "image_ref": prepared.images[0],
            "image_ref_alt": prepared.images[1],
            "flavor_ref": prepared.flavors[0],
            "flavor_ref_alt": prepared.flavors[1],
            "min_compute_nodes": "2",
            "min_microversion": "2.1",
            "max_microversion": "latest",
            "build_interval": "1",
            "build_timeout": "120",
            "shelved_offload_time": "0",
            "fixed_network_name": login.network,
            "hypervisor_type": login.hypervisor_type,
        },
        "compute-feature-enabled": {
            **dict.fromkeys(
                (
                    "resize",
                    "cold_migration",
                    "live_migration",
                    "block_migration_for_live_migration",
                    "live_migrate_back_and_forth",
                    "can_migrate_between_any_hosts",
                    "pause",
                    "suspend",
                    "shelve",
                    "shelve_migrate",
                    "rescue",
                    "snapshot",
                    "console_output",
                    "vnc_console",
                    "personality",
                    "config_drive",
                    "disk_config",
                    "enable_instance_password",
                    "hostname_fqdn_sanitization",
                ),
                "true",
            ),
            **dict.fromkeys(("stable_rescue", "change_password", "interface_attach"), "false"),
            "dhcp_domain": "",
            "scheduler_enabled_filters": "ComputeFilter,SameHostFilter,DifferentHostFilter,"
            "ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter",
        },
        "validation": {
            "run_validation": "false",
            "connect_method": "fixed",
            "security_group": "false",
            "security_group_rules": "false",
        },
        "network": {"project_networks_reachable": "true"},
        "network-feature-enabled": {"ipv6": "false", "floating_ips": "false"},
    }


def run(directory: Path, configuration: Path, tests: Sequence[str], workers: int) -> Iterator[Result]:
    """Run these tests, and yield each result as it comes.

    :raises RuntimeError: Tempest itself fails.
    """
    home = environment()
    workspace = directory / "workspace"
    if not workspace.exists():
        _tempest(home, directory, "init", str(workspace))
    (workspace / "etc" / "tempest.conf").write_bytes(configuration.read_bytes())
    wanted = directory / "wanted"
    # A test's id is its name, and then its attributes in brackets.
    wanted.write_text("".join(f"^{re.escape(test)}(\\[|$)\n" for test in tests))
    yield from _results(home, directory, workspace, wanted, workers)


def _tempest(home: Path, directory: Path, *arguments: str) -> None:
    command = [str(home / "bin" / "tempest"), *arguments, "--workspace-path", str(directory / "workspaces.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed:\n{done.stderr[-2000:]}")


def _results(home: Path, directory: Path, workspace: Path, wanted: Path, workers: int) -> Iterator[Result]:
    log = directory / "tempest-run.log"
    command = [
        str(home / "bin" / "tempest"), "run", "--include-list", str(wanted), "--concurrency", str(workers), "--subunit",
    ]  # fmt: skip
    # stestr starts its workers with the python that is first in PATH.
    environment_ = {**os.environ, "PATH": f"{home / 'bin'}:{os.environ.get('PATH', os.defpath)}"}
    with log.open("ab") as errors:
        tempest = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=workspace,
            env=environment_,
        )
        reader = subprocess.Popen(
            [str(home / "bin" / "python"), str(_READER)],
            stdin=tempest.stdout,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert tempest.stdout and reader.stdout
        tempest.stdout.close()
        heard = 0
        try:
            for line in reader.stdout:
                told = json.loads(line)
                heard += 1
                name = told["test"].partition("[")[0].strip()
                yield Result(name, told["status"], told["seconds"], told["words"] or "")
        finally:
            for process in (tempest, reader):
                if process.poll() is None:
                    process.terminate()
                process.wait(60)
    if not heard:
        raise RuntimeError(f"Tempest ran no test:\n{log.read_text(errors='replace')[-3000:]}")


def _write(path: Path, text: str) -> None:
    with open(path, "w", opener=_private) as file:
        file.write(text)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

# SPDX-License-Identifier: Apache-2.0
"""The DevStack plugin, walked through DevStack's phases on a controller and on a subnode.

DevStack is not there: devstack_tree/functions.sh has those of its functions that plugins may use. What the plugin
writes is read by the shipped nova-lite-manage.
"""

from __future__ import annotations

import configparser
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[2]
_WALK = Path(__file__).with_name("devstack_tree") / "walk.sh"
_BIN = Path(sys.executable).parent

# What DevStack enables by itself, of what matters here.
DEFAULT_SERVICES = "key,mysql,rabbit,g-api,n-api,n-api-meta,n-cpu,n-cond,n-sch,n-novnc,placement-api,placement-client"
STACK = ("stack pre-install", "stack install", "stack post-config", "stack extra", "stack test-config")

# "config check" is answered by the shipped program; there is no database here to do the rest on.
_MANAGE = f"""\
#!/bin/sh
printf 'nova-lite-manage %s\\n' "$*" >> "$CALLS"
case "$CHECKED $*" in
    "yes "*" config check") exec {_BIN}/nova-lite-manage "$@" ;;
esac
"""


@dataclass
class Node:
    """One machine on which DevStack runs.

    :param checked: whether its files are really checked when the plugin asks for that, which takes seconds.
    """

    directory: Path
    settings: Mapping[str, str]
    checked: bool = True

    def __post_init__(self) -> None:
        self.directory.mkdir(exist_ok=True)
        programs = self.directory / "bin"
        programs.mkdir()
        for name in ("api", "conductor", "scheduler", "compute", "novncproxy"):
            (programs / f"nova-lite-{name}").symlink_to(_BIN / f"nova-lite-{name}")
        (programs / "nova-lite-manage").write_text(_MANAGE)
        (programs / "nova-lite-manage").chmod(0o755)

    @property
    def conf(self) -> Path:
        return self.directory / "etc" / "nova-lite.conf"

    @property
    def cpu_conf(self) -> Path:
        return self.directory / "etc" / "nova-lite-cpu.conf"

    def run(self, *phases: str) -> subprocess.CompletedProcess[str]:
        """Walk through these phases in one shell, as one run of stack.sh, unstack.sh or clean.sh does."""
        environment = {
            "PATH": os.environ["PATH"],
            "PLUGIN_DIR": str(PLUGIN),
            "CALLS": str(self.directory / "calls"),
            "CHECKED": "yes" if self.checked else "no",
            "DEST": str(self.directory),
            "DATA_DIR": str(self.directory / "data"),
            "NOVA_LITE_CONF_DIR": str(self.conf.parent),
            "PYTHON_BIN": str(self.directory / "bin"),
            "TEMPEST_CONFIG": str(self.directory / "tempest.conf"),
            "STACK_USER": "stack",
            "VIRT_DRIVER": "libvirt",
            "LIBVIRT_TYPE": "qemu",
            "LIBVIRT_GROUP": "libvirt",
            "DATABASE_PASSWORD": "of-the-database",
            "RABBIT_PASSWORD": "of-the-bus",
            "SERVICE_PASSWORD": "of-the-services",
            "SERVICE_PROTOCOL": "http",
            "SERVICE_HOST": "192.0.2.1",
            "SERVICE_LISTEN_ADDRESS": "0.0.0.0",
            "SERVICE_TIMEOUT": "60",
            "SERVICE_DOMAIN_NAME": "Default",
            "SERVICE_PROJECT_NAME": "service",
            "KEYSTONE_SERVICE_URI": "http://192.0.2.1/identity",
            "REGION_NAME": "RegionOne",
            **self.settings,
        }
        (self.directory / "calls").write_text("")
        (self.directory / "tempest.conf").touch()
        return subprocess.run(
            ["bash", str(_WALK), *phases], capture_output=True, text=True, env=environment, timeout=600, check=False
        )

    def walk(self, *phases: str) -> list[list[str]]:
        """Walk through these phases, and return the calls of DevStack's functions."""
        done = self.run(*phases)
        assert done.returncode == 0, done.stdout + done.stderr
        return [shlex.split(line) for line in (self.directory / "calls").read_text().splitlines()]


def controller(directory: Path, **settings: str) -> Node:
    return Node(
        directory, {"ENABLED_SERVICES": DEFAULT_SERVICES, "DATABASE_TYPE": "mysql", "HOST_IP": "192.0.2.1", **settings}
    )


def subnode(directory: Path, **settings: str) -> Node:
    return Node(
        directory,
        {"ENABLED_SERVICES": "n-cpu,placement-client", "RABBIT_HOST": "192.0.2.1", "HOST_IP": "192.0.2.2", **settings},
    )


def read(path: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(strict=True)
    parser.read_string(path.read_text())
    return {"DEFAULT": dict(parser.defaults())} | {
        name: {key: value for key, value in parser.items(name) if key not in parser.defaults()}
        for name in parser.sections()
    }


def calls_of(calls: Sequence[Sequence[str]], *begin: str) -> list[list[str]]:
    """Return what is behind these words in the calls that begin with them."""
    return [list(call[len(begin) :]) for call in calls if tuple(call[: len(begin)]) == begin]


def services(calls: Sequence[Sequence[str]]) -> set[str]:
    (listed,) = calls_of(calls, "services")
    return set(listed[0].split(","))


# --- which services a node gets ---------------------------------------------------------------------------------------


def test_a_controller_gets_nova_lite_in_the_place_of_nova(tmp_path: Path) -> None:
    found = services(controller(tmp_path).walk())

    assert found == {"key", "mysql", "rabbit", "g-api", "nl-api", "nl-cond", "nl-sch", "nl-cpu", "nl-novnc"}


def test_a_subnode_gets_the_compute_alone(tmp_path: Path) -> None:
    assert services(subnode(tmp_path).walk()) == {"nl-cpu"}


def test_services_of_nova_lite_that_are_named_are_those_that_run(tmp_path: Path) -> None:
    node = controller(tmp_path, ENABLED_SERVICES="mysql,rabbit,n-cpu,nl-sch")

    assert services(node.walk()) == {"mysql", "rabbit", "nl-sch"}


def test_a_node_without_compute_service_is_left_alone(tmp_path: Path) -> None:
    calls = controller(tmp_path, ENABLED_SERVICES="key,mysql,rabbit").walk(*STACK, "unstack", "clean")

    assert [call[0] for call in calls if call[0] not in ("phase", "services", "define_plugin")] == []


# --- a controller -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Node, list[list[str]]]:
    """A controller with a compute of its own after a whole run of stack.sh, and the calls of that run."""
    node = controller(tmp_path_factory.mktemp("node") / "controller", ENABLED_SERVICES=f"{DEFAULT_SERVICES},tempest")
    return node, node.walk(*STACK)


def test_each_phase_does_its_own_part(stacked: tuple[Node, list[list[str]]]) -> None:
    _, calls = stacked
    phases: dict[str, list[str]] = {}
    current = phases.setdefault("", [])
    for call in calls:
        if call[0] == "phase":
            current = phases.setdefault(call[1], [])
        else:
            current.append(" ".join(call[:2]) if call[0] in ("run_process", "sudo", "recreate_database") else call[0])
    assert phases["stack pre-install"] == ["install_libvirt", *["install_package"] * 2]
    assert phases["stack install"] == ["setup_develop"]
    assert phases["stack post-config"] == [
        "sudo install",
        "configure_libvirt",
        *["sudo ip"] * 3,
        "rpc_backend_add_vhost",
        "create_service_user",
        "get_or_create_service",
        "get_or_create_endpoint",
    ]
    assert phases["stack extra"] == [
        *["nova-lite-manage"] * 2,
        "recreate_database nova_lite",
        "nova-lite-manage",
        "run_process nl-cond",
        "run_process nl-sch",
        "run_process nl-api",
        "wait_for_service",
        *["openstack"] * 7,
        "run_process nl-novnc",
        "run_process nl-cpu",
    ]


def test_it_is_installed_from_its_checkout_with_libvirt(stacked: tuple[Node, list[list[str]]]) -> None:
    _, calls = stacked
    assert calls_of(calls, "setup_develop") == [[str(PLUGIN), "libvirt"]]


def test_services_start_with_the_file_that_is_theirs(stacked: tuple[Node, list[list[str]]]) -> None:
    node, calls = stacked
    programs = node.directory / "bin"
    assert {call[0]: call[1:] for call in calls_of(calls, "run_process")} == {
        "nl-api": [f"{programs}/nova-lite-api --config-file {node.conf}"],
        "nl-cond": [f"{programs}/nova-lite-conductor --config-file {node.conf}"],
        "nl-sch": [f"{programs}/nova-lite-scheduler --config-file {node.conf}"],
        "nl-novnc": [f"{programs}/nova-lite-novncproxy --config-file {node.conf}"],
        "nl-cpu": [f"{programs}/nova-lite-compute --config-file {node.cpu_conf}", "libvirt", "root"],
    }


def test_the_schema_is_made_with_the_file_that_was_checked(stacked: tuple[Node, list[list[str]]]) -> None:
    node, calls = stacked
    assert calls_of(calls, "nova-lite-manage", "--config-file", str(node.conf)) == [["config", "check"], ["db", "sync"]]
    assert calls_of(calls, "nova-lite-manage", "--config-file", str(node.cpu_conf)) == [["config", "check"]]


def test_keystone_knows_the_service_its_user_and_its_address(stacked: tuple[Node, list[list[str]]]) -> None:
    _, calls = stacked
    assert calls_of(calls, "create_service_user") == [["nova", "admin"]]
    assert [call[:2] for call in calls_of(calls, "get_or_create_service")] == [["nova", "compute"]]
    assert calls_of(calls, "get_or_create_endpoint") == [["compute", "RegionOne", "http://192.0.2.1:8774/v2.1"]]


def test_the_control_planes_file(stacked: tuple[Node, list[list[str]]]) -> None:
    node, _ = stacked
    options = read(node.conf)
    assert options["DEFAULT"]["transport_url"] == "rabbit://stackrabbit:of-the-bus@192.0.2.1:5672/nova_lite"
    assert options["database"] == {
        "connection": "mysql+pymysql://root:of-the-database@127.0.0.1:3306/nova_lite?charset=utf8mb4"
    }
    assert options["api"] == {
        "listen": "0.0.0.0",
        "port": "8774",
        "public_url": "http://192.0.2.1:8774",
        "workers": "1",
    }
    assert options["auth"] == {"strategy": "keystone"}
    assert options["keystone_authtoken"]["username"] == "nova"
    assert options["network"] == {"driver": "bridge", "bridge": "br-nova-lite", "subnet": "10.79.0.0/24"}
    assert (node.conf.stat().st_mode & 0o777) == 0o600


def test_the_computes_file_has_no_login_at_the_database(stacked: tuple[Node, list[list[str]]]) -> None:
    node, _ = stacked
    options = read(node.cpu_conf)
    assert "of-the-database" not in node.cpu_conf.read_text()
    assert not {"database", "keystone_authtoken", "api", "auth"} & set(options)
    assert options["compute"] == {"driver": "libvirt"}
    assert options["libvirt"] == {
        "virt_type": "qemu",
        "live_migration_uri": "qemu+ssh://stack@%s/system",
        "live_migration_inbound_addr": "192.0.2.1",
        "host_ip": "192.0.2.1",
        "vnc_listen": "127.0.0.1",
    }
    assert options["network"] == {"driver": "bridge", "bridge": "br-nova-lite", "subnet": "10.79.0.0/24"}
    assert (node.cpu_conf.stat().st_mode & 0o777) == 0o600


def test_the_bridge_has_the_subnets_first_address(stacked: tuple[Node, list[list[str]]]) -> None:
    _, calls = stacked
    assert [" ".join(call) for call in calls_of(calls, "sudo", "ip")] == [
        "link add name br-nova-lite type bridge",
        "link set br-nova-lite up",
        "address replace 10.79.0.1/24 dev br-nova-lite",
    ]


def test_tempest_is_told_of_a_compute_service(stacked: tuple[Node, list[list[str]]]) -> None:
    node, calls = stacked
    made = [call[call.index("--id") + 1] for call in calls_of(calls, "openstack")]
    options = read(node.directory / "tempest.conf")
    assert options["service_available"] == {"nova": "True"}
    assert {options["compute"]["flavor_ref"], options["compute"]["flavor_ref_alt"]} <= set(made)


def test_stacking_again_makes_the_same(stacked: tuple[Node, list[list[str]]]) -> None:
    node, _ = stacked
    before = node.conf.read_text(), node.cpu_conf.read_text()

    calls = node.walk("stack post-config")

    assert (node.conf.read_text(), node.cpu_conf.read_text()) == before
    assert ["link", "add"] not in [call[:2] for call in calls_of(calls, "sudo", "ip")]


def test_unstack_stops_what_was_started(stacked: tuple[Node, list[list[str]]]) -> None:
    node, calls = stacked
    started = [call[0] for call in calls_of(calls, "run_process")]

    stopped = [call[0] for call in calls_of(node.walk("unstack"), "stop_process")]

    assert sorted(stopped) == sorted(started)
    assert stopped[:2] == ["nl-novnc", "nl-api"] and stopped[-1] == "nl-cond"
    assert node.conf.exists()


def test_clean_removes_what_is_ours_and_only_that(tmp_path: Path) -> None:
    node = controller(tmp_path / "node")
    node.walk("stack pre-install", "stack install", "stack post-config")
    ours = "instance-0b1d36a4-5a7e-4f1c-9d5e-6f0f8a8f2c11"
    (node.directory / "domains").write_text(f"{ours}\ninstance-00000001\nsomebody-elses\n\n")

    calls = node.walk("unstack", "clean")

    assert [call[1] for call in calls_of(calls, "sudo", "virsh")] == [ours, ours]
    assert calls_of(calls, "sudo", "rabbitmqctl") == [["delete_vhost", "nova_lite"]]
    assert ["link", "delete", "br-nova-lite", "type", "bridge"] in calls_of(calls, "sudo", "ip")
    assert sorted(path.name for path in node.directory.iterdir()) == ["bin", "calls", "data", "domains", "tempest.conf"]
    assert list((node.directory / "data").iterdir()) == []


# --- a subnode --------------------------------------------------------------------------------------------------------


def test_a_subnode_runs_a_compute_that_knows_no_database(tmp_path: Path) -> None:
    node = subnode(tmp_path / "node", NOVA_LITE_BRIDGE_INTERFACE="eth1")
    node.checked = False  # as the controller's, which is

    calls = node.walk(*STACK)

    assert [call[0] for call in calls_of(calls, "run_process")] == ["nl-cpu"]
    assert not node.conf.exists()
    text = node.cpu_conf.read_text()
    assert "of-the-database" not in text and "[database]" not in text
    options = read(node.cpu_conf)
    assert options["DEFAULT"]["transport_url"] == "rabbit://stackrabbit:of-the-bus@192.0.2.1:5672/nova_lite"
    assert options["libvirt"]["host_ip"] == options["libvirt"]["vnc_listen"] == "192.0.2.2"
    done = {call[0] for call in calls}
    assert not done & {"recreate_database", "create_service_user", "get_or_create_service", "rpc_backend_add_vhost"}
    assert "openstack" not in done
    assert [" ".join(call) for call in calls_of(calls, "sudo", "ip")] == [
        "link add name br-nova-lite type bridge",
        "link set br-nova-lite up",
        "link set eth1 master br-nova-lite up",
    ]
    assert calls_of(node.walk("unstack"), "stop_process") == [["nl-cpu"]]


# --- what may be chosen, and what is refused --------------------------------------------------------------------------


def test_with_tls_proxy_the_api_is_behind_it(tmp_path: Path) -> None:
    node = controller(
        tmp_path / "node", ENABLED_SERVICES=f"{DEFAULT_SERVICES},tls-proxy", SSL_BUNDLE_FILE="/data/ca.pem"
    )

    node.checked = False
    calls = node.walk(*STACK)

    assert calls_of(calls, "start_tls_proxy") == [["nova-lite", "*", "8774", "192.0.2.1", "18774"]]
    assert calls_of(calls, "get_or_create_endpoint") == [["compute", "RegionOne", "https://192.0.2.1:8774/v2.1"]]
    assert calls_of(calls, "wait_for_service") == [["60", "https://192.0.2.1:8774/"]]
    assert read(node.conf)["api"]["port"] == "18774"
    assert read(node.cpu_conf)["glance"]["cafile"] == "/data/ca.pem"


def test_a_fake_hypervisor_plays_many_hosts_and_needs_no_libvirt(tmp_path: Path) -> None:
    node = controller(tmp_path / "node", VIRT_DRIVER="fake", NUMBER_FAKE_NOVA_COMPUTE="3")

    calls = node.walk("stack pre-install", "stack install", "stack post-config")

    assert calls_of(calls, "install_libvirt") == calls_of(calls, "configure_libvirt") == []
    assert calls_of(calls, "setup_develop") == [[str(PLUGIN)]]
    options = read(node.cpu_conf)
    assert options["fake"] == {"hosts": f"{os.uname().nodename}-[1-3]"}
    assert options["network"]["driver"] == "fake"


def test_what_local_conf_adds_is_checked_before_anything_starts(tmp_path: Path) -> None:
    node = controller(tmp_path / "node", VIRT_DRIVER="fake")
    node.walk("stack post-config")
    with node.conf.open("a") as file:
        file.write("[quotas]\ninstances = 3\n")

    done = node.run("stack extra")

    assert done.returncode != 0
    assert "there is no group [quotas]; is quota meant?" in done.stdout
    assert f"{node.conf} has the problems above" in done.stderr
    assert "run_process" not in (node.directory / "calls").read_text()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"VIRT_DRIVER": "ironic"}, "VIRT_DRIVER=ironic: nova_lite has the drivers libvirt and fake"),
        ({"NOVA_LITE_NETWORK": "neutron"}, "NOVA_LITE_NETWORK=neutron: set bridge or none"),
        ({"DATABASE_TYPE": ""}, "need the database: enable the service mysql"),
        ({"ENABLED_SERVICES": "mysql,n-cpu"}, "needs RabbitMQ: enable the service rabbit, or set RABBIT_HOST"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_first(tmp_path: Path, settings: dict[str, str], words: str) -> None:
    node = controller(tmp_path / "node", **settings)

    done = node.run(*STACK)

    assert done.returncode != 0 and words in done.stderr
    assert calls_of([shlex.split(line) for line in (node.directory / "calls").read_text().splitlines()], "phase") == [
        ["stack pre-install"]
    ]

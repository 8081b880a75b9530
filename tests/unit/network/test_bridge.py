# SPDX-License-Identifier: Apache-2.0
"""How instances are connected: not at all, or to a bridge of the host."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import uuid

import pytest
from oslo_config import cfg

from nova_lite import conf as nova_conf
from nova_lite import exception
from nova_lite.network.bridge import BridgeNetwork, mac_address
from nova_lite.network.none import NoNetwork
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.instance import Instance, NetworkRequest
from nova_lite.objects.network import port_id

INSTANCE = Instance(
    uuid="6f2f5d6c-0000-4000-8000-00000000000a",
    name="n",
    hostname="n",
    project_id="p",
    user_id="u",
    flavor=Flavor("1", "small", 1, 64, 1),
    node="h",
    host="h",
)


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    nova_conf.register(conf)
    conf([], project="nova-lite", default_config_files=[])
    conf.set_override("bridge", "nl-missing0", "network")
    return conf


def test_no_network(conf: cfg.ConfigOpts) -> None:
    network = NoNetwork(conf)

    assert network.connect(INSTANCE) == ([], {"links": [], "networks": [], "services": []}, {})
    network.disconnect(INSTANCE)


def test_bridge_that_is_not_there_fails_the_build_and_is_named(conf: cfg.ConfigOpts) -> None:
    with pytest.raises(exception.BuildFailed, match="no bridge nl-missing0"):
        BridgeNetwork(conf).connect(INSTANCE)


@pytest.mark.parametrize("name", ["lo", "../net/lo", "..", ""])
def test_what_is_no_bridge_is_refused(conf: cfg.ConfigOpts, name: str) -> None:
    conf.set_override("bridge", name, "network")

    with pytest.raises(exception.BuildFailed):
        BridgeNetwork(conf).connect(INSTANCE)


def test_server_that_asks_for_no_network_needs_no_bridge(conf: cfg.ConfigOpts) -> None:
    alone = dataclasses.replace(INSTANCE, networks=(NetworkRequest("none"),))

    assert BridgeNetwork(conf).connect(alone)[0] == []


def test_addresses_of_ports_follow_from_the_instance() -> None:
    others = [str(uuid.uuid4()) for _ in range(50)]

    assert re.fullmatch(r"fa:16:3e(:[0-9a-f]{2}){3}", mac_address(INSTANCE.uuid))
    assert mac_address(INSTANCE.uuid) == mac_address(INSTANCE.uuid)
    assert len({port_id(other) for other in others}) == 50


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2 for namespaces")
def test_instance_is_plugged_into_a_bridge_that_is_there() -> None:
    """In a network namespace of its own, so that no bridge of the machine's is touched."""
    program = f"""
import json
from nova_lite import conf
from nova_lite.network.bridge import BridgeNetwork
from {__name__} import INSTANCE
conf.register()
conf.CONF([], default_config_files=[])
conf.CONF.set_override("bridge", "nl-test0", "network")
conf.CONF.set_override("mtu", 1400, "network")
[vif], data, addresses = BridgeNetwork(conf.CONF).connect(INSTANCE)
print(json.dumps([vif.bridge, vif.mac, vif.mtu, data, addresses]))
"""
    shell = 'mount -t sysfs sysfs /sys && ip link add nl-test0 type bridge && exec "$0" -c "$1"'
    command = ["unshare", "--net", "--mount", "sh", "-c", shell, sys.executable, program]

    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    bridge, mac, mtu, data, addresses = json.loads(shown)
    assert (bridge, mac, mtu, addresses) == ("nl-test0", mac_address(INSTANCE.uuid), 1400, {})
    assert data["links"][0]["ethernet_mac_address"] == mac
    assert data["networks"][0]["link"] == data["links"][0]["id"]

# SPDX-License-Identifier: Apache-2.0
"""A guest on a bridge, on a host with network interfaces of its own."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nova_lite.network.bridge import mac_address
from nova_lite.objects.network import port_id
from nova_lite.virt.driver import Vif
from tests.fixtures import guest as nano
from tests.fixtures.libvirtd import Libvirtd
from tests.libvirt.conftest import make_instance, wait_for_console

BRIDGE = "nl-guests"


@pytest.fixture
def bridged_host(libvirtd: Libvirtd) -> Iterator[Libvirtd]:
    """A second libvirtd, beside the one of all tests, with a bridge."""
    if shutil.which("ip") is None:
        if os.environ.get("NOVA_LITE_REQUIRE_LIBVIRT") == "1":
            pytest.fail("ip is missing: install iproute2")
        pytest.skip("ip is missing: install iproute2")
    daemon = Libvirtd(Path(tempfile.mkdtemp(prefix="nova-lite-"), "host"), "bridged", private_network=True)
    try:
        daemon.start()
        daemon.run(["ip", "link", "add", BRIDGE, "type", "bridge"])
        yield daemon
    finally:
        daemon.stop()
        daemon.directory.parent.rmdir()


def test_guest_is_plugged_into_the_bridge_and_unplugged(
    bridged_host: Libvirtd, make_driver: Callable[..., Any], image: Path
) -> None:
    driver = make_driver(connection_uri=bridged_host.uri, call_timeout=60.0)
    instance = make_instance()
    vif = Vif(port_id(instance.uuid), mac_address(instance.uuid), BRIDGE, 1400)

    driver.spawn(instance, image, [vif], None)

    wait_for_console(driver, instance, nano.READY)
    [port] = ports(bridged_host)
    assert (port["ifname"], port["mtu"]) == (f"tap{vif.port[:11]}", 1400)
    assert driver.inventory()[0].node == "bridged"

    driver.destroy(instance)

    assert ports(bridged_host) == []


def ports(host: Libvirtd) -> list[dict[str, Any]]:
    """Return the interfaces that are plugged into the bridge."""
    shown = host.run(["ip", "-json", "link", "show", "master", BRIDGE])
    return list(json.loads(shown or "[]"))

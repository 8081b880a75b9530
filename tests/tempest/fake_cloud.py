# SPDX-License-Identifier: Apache-2.0
"""The cloud that Tempest asks unless told otherwise: two fake hosts in one process, real Keystone and Glance."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.fixtures import openstack
from tests.fixtures.cloud import Cloud
from tests.fixtures.openstack import Glance, Keystone
from tests.tempest.login import Login

#: The name of the network that servers are on.
NETWORK = "tempest"
_PATIENCE = 60.0
# Nothing boots here, and what is downloaded is kept small.
_DISK = bytes(65536)


@contextlib.contextmanager
def running(directory: Path) -> Iterator[Login]:
    """Start the cloud, with its files in the directory, and stop it at the end."""
    with contextlib.ExitStack() as stack:
        keystone = Keystone(openstack.environment(), directory, cache=True)
        stack.callback(keystone.stop)
        # Of two requests that read and then write at the same moment, SQLite lets one fail.
        keystone.threads = 1
        keystone.start()
        glance = Glance(keystone.home, directory, keystone)
        stack.callback(glance.stop)
        glance.threads = 1
        glance.start()
        keystone.add_user("nova", "service", "admin")
        cloud = Cloud(directory, f"sqlite:///{directory}/nova-lite.sqlite", "fake://", _settings(keystone))
        keystone.add_endpoint("compute", "nova", f"{cloud.url}/v2.1")
        keystone.add_endpoint("network", "neutron", f"{cloud.url}/network")
        stack.callback(cloud.stop)
        process = cloud.start("all-in-one")
        process.wait_until_started(_PATIENCE)
        yield Login(
            keystone.auth_url,
            openstack.ADMIN,
            openstack.PASSWORD,
            openstack.ADMIN,
            openstack.REGION,
            hypervisor_type="fake",
            network=NETWORK,
            disk=_DISK,
            disk_format="raw",
        )


def _settings(keystone: Keystone) -> dict[str, dict[str, str]]:
    login = keystone.login("nova", "service")
    return {
        # One process has it all, and shares two processors with Tempest.
        "DEFAULT": {"report_interval": "5", "service_down_time": "60"},
        "conductor": {"workers": "2", "lease": "30", "scheduler_timeout": "30"},
        "scheduler": {"workers": "2", "grant_lifetime": "60"},
        "compute": {"conductor_timeout": "30", "inventory_interval": "5"},
        "fake": {"hosts": "host[1-2]", "vcpus": "64", "memory_mb": "65536", "disk_gb": "1000"},
        # Those that Nova is shipped with: what it says of quotas is part of what is asked.
        "quota": {
            "instances": "10",
            "cores": "20",
            "ram": "51200",
            "server_groups": "10",
            "server_group_members": "10",
        },
        "network": {"driver": "fake", "subnet": "10.20.0.0/16", "name": NETWORK},
        "auth": {"strategy": "keystone"},
        "keystone_authtoken": {**login, "www_authenticate_uri": keystone.auth_url},
        "image": {"driver": "glance"},
        "glance": login,
    }

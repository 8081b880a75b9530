# SPDX-License-Identifier: Apache-2.0
"""What a new cloud is given, asked of its own APIs as any client would: ``python furnish.py WHAT ...``.

people: the projects, users and catalogue entries in Keystone. hosts: waits until there are so many that are up. goods:
flavors and images. What is there is left as it is. report: prints the hosts and the servers, and fails if not all hosts
are up. The login is in the environment (OS_*), passwords of others are, too.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import openstack
from openstack.connection import Connection
from openstack.identity.v3._proxy import Proxy

# Name, id, MiB of memory, GiB of disk, VCPUs.
FLAVORS = (
    ("m1.nano", "42", 32, 1, 1),
    ("m1.micro", "84", 128, 1, 1),
    ("m1.tiny", "1", 512, 1, 1),
    ("m1.small", "2", 2048, 20, 1),
    ("m1.medium", "3", 4096, 40, 2),
)


def people(cloud: Connection) -> None:
    """Make the projects, the users and the entries in the catalogue."""
    identity = cloud.identity
    assert isinstance(identity, Proxy)  # the SDK knows a Keystone of long ago as well
    region, compute_url, image_url = (os.environ[name] for name in ("OS_REGION_NAME", "COMPUTE_URL", "IMAGE_URL"))
    roles = {role.name: role for role in identity.roles()}
    projects = {project.name: project for project in identity.projects()}
    for name in ("service", "demo"):
        if name not in projects:
            projects[name] = identity.create_project(name=name, domain_id="default")
            print(f"project {name}")
    users = {user.name: user for user in identity.users()}
    for name, password, project, role in (
        ("nova", os.environ["SERVICE_PASSWORD"], "service", "admin"),
        ("glance", os.environ["SERVICE_PASSWORD"], "service", "service"),
        ("demo", os.environ["OS_PASSWORD"], "demo", "member"),
        ("admin", os.environ["OS_PASSWORD"], "demo", "admin"),
    ):
        if name not in users:
            users[name] = identity.create_user(name=name, password=password, domain_id="default")
            print(f"user {name}")
        identity.assign_project_role_to_user(projects[project], users[name], roles[role])
    known = {service.type for service in identity.services()}
    for kind, name, url in (
        ("compute", "nova", f"{compute_url}/v2.1"),
        ("image", "glance", image_url),
        ("network", "neutron", f"{compute_url}/network"),
    ):
        if kind not in known:
            service = identity.create_service(type=kind, name=name)
            for interface in ("public", "internal"):
                identity.create_endpoint(service_id=service.id, interface=interface, url=url, region_id=region)
            print(f"service {name}")


def hosts(cloud: Connection, wanted: int) -> None:
    """Wait until so many hosts are up.

    :raises SystemExit: they are not within a minute.
    """
    deadline = time.monotonic() + 60
    while True:
        states = {service.host: service.state for service in cloud.compute.services(binary="nova-compute")}
        if list(states.values()).count("up") >= wanted:
            return
        if time.monotonic() > deadline:
            sys.exit(f"{wanted} hosts should be up, and there are {states}")
        time.sleep(0.2)


def goods(cloud: Connection, images: list[Path]) -> None:
    """Make the flavors, and an image of each file, named as the file is."""
    known = {flavor.id for flavor in cloud.compute.flavors()}
    for name, flavor_id, ram, disk, vcpus in FLAVORS:
        if flavor_id not in known:
            cloud.compute.create_flavor(name=name, id=flavor_id, ram=ram, disk=disk, vcpus=vcpus)
            print(f"flavor {name}")
    there = {image.name for image in cloud.image.images()}
    for path in images:
        if path.stem not in there:
            cloud.create_image(
                path.stem,
                filename=str(path),
                disk_format=path.suffix.removeprefix("."),
                container_format="bare",
                visibility="public",
                wait=True,
                allow_duplicates=True,
            )
            print(f"image {path.stem}")


def report(cloud: Connection, wanted: int) -> int:
    """Print what the cloud says of its services and its servers; return 0 if all are up."""
    found = sorted(cloud.compute.services(), key=lambda service: (service.binary, service.host))
    hosts_up = sum(service.binary == "nova-compute" and service.state == "up" for service in found)
    for service in found:
        if service.state != "up" or service.status != "enabled":
            print(f"{service.binary} on {service.host} is {service.state} and {service.status}")
    up = sum(service.state == "up" for service in found)
    print(f"Services: {up} of {len(found)} up; hosts: {hosts_up} of {wanted}")
    servers = list(cloud.compute.servers(all_projects=True))
    for server in servers[:20]:
        doing = server.task_state or "-"
        print(f"  {server.id}  {server.name:20} {server.status:10} {doing:12} {server.hypervisor_hostname or '-'}")
    print(f"Servers: {len(servers)}" + (", of which the first 20 are shown" if len(servers) > 20 else ""))
    return int(hosts_up < wanted or up < len(found))


def main() -> None:
    cloud = openstack.connect(cloud="envvars")
    if sys.argv[1] == "people":
        people(cloud)
    elif sys.argv[1] == "hosts":
        hosts(cloud, int(sys.argv[2]))
    elif sys.argv[1] == "report":
        sys.exit(report(cloud, int(sys.argv[2])))
    else:
        goods(cloud, [Path(argument) for argument in sys.argv[2:]])


if __name__ == "__main__":
    main()

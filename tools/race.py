#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boot the servers of one server group at the same moment, again and again, and judge where they went.

With the policy anti-affinity and one server more than there are hosts, every host must get exactly one server, and
the last server must be told why it did not fit. It talks to any cloud that speaks the Compute API: a nova_lite, or
a Nova to compare with. The exit status is 0 if no rule was broken and no server was refused wrongly.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import keystoneauth1.exceptions
import openstack
import openstack.exceptions

# The first microversion with a server group's policy as a single word; it also takes "networks": "none".
MICROVERSION = "2.64"
# Marks servers as this program's own, so that a later run can clear away what an earlier one kept.
MARK = {"made_by": "race.py"}
POLL = 0.05


@dataclass
class Server:
    """One boot as the user sees it; seconds count from the moment at which all were sent."""

    name: str
    id: str = ""
    status: str = "(not sent)"
    host: str = ""
    why: str = ""
    seconds: float = 0.0

    def settle(self, found: dict[str, Any]) -> None:
        # Only administrators see host names; everybody sees hostId, which differs from host to host.
        self.status = found["status"]
        self.host = found.get("OS-EXT-SRV-ATTR:host") or found.get("hostId", "")[:12]
        self.why = found.get("fault", {}).get("message", "")

    def __str__(self) -> str:
        where = f"on {self.host}" if self.status == "ACTIVE" else self.why
        return f"{self.seconds:6.2f} s  {self.name}  {self.status:<7}  {where}"


@dataclass
class Totals:
    """What all rounds together came to."""

    statuses: Counter[str] = field(default_factory=Counter)
    hosts: set[str] = field(default_factory=set)
    violations: int = 0
    wrongly_refused: int = 0
    slowest: float = 0.0

    def add(self, servers: list[Server], policy: str, room: int | None) -> None:
        """Judge one round.

        :param room: hosts that there are, or None if that is not known.
        """
        active = Counter(server.host for server in servers if server.status == "ACTIVE")
        self.statuses.update(server.status for server in servers)
        self.hosts |= active.keys()
        self.slowest = max(self.slowest, *(server.seconds for server in servers))
        if policy == "anti-affinity":
            self.violations += sum(count - 1 for count in active.values())
            if room is not None:
                self.wrongly_refused += max(0, min(room, len(servers)) - active.total())
        elif policy == "affinity":
            self.violations += max(0, len(active) - 1)

    def report(self, rounds: int) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        return (
            f"{rounds} round(s): {counts}; {len(self.hosts)} distinct hosts; "
            f"{self.violations} violation(s) of the policy; {self.wrongly_refused} server(s) refused although a host "
            f"was free; slowest boot {self.slowest:.2f} s"
        )


class Race:
    """One cloud, and what is booted on it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._cloud = _connect(options)
        self._compute = self._cloud.compute
        self._image = self._find("image", f"{self._endpoint('image')}/v2/images", "images", options.image)
        flavors = self._get("/flavors/detail", "flavors")
        flavors.sort(key=lambda flavor: (flavor["ram"], flavor["vcpus"], flavor["disk"]))
        self._flavor = _choose("flavor", flavors, options.flavor)
        self.room = options.hosts or self._count_hosts()

    def run(self, number: int, show: Callable[[Server], None]) -> list[Server]:
        """Boot one group's servers at once and wait until each is settled."""
        body = {"name": f"race-{uuid.uuid4().hex[:8]}", "policy": self._options.policy}
        group = self._post("/os-server-groups", {"server_group": body})["server_group"]["id"]
        servers = [Server(f"race-{number}-{place}") for place in range(1, self._options.servers + 1)]
        start = threading.Barrier(len(servers))
        threads = [threading.Thread(target=self._boot, args=(server, group, start, show)) for server in servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return servers

    def clear(self) -> None:
        """Delete the servers and groups that this program made, in this run or an earlier one."""
        deadline = time.monotonic() + self._options.timeout
        while servers := self._mine():
            for server in servers:
                if server["OS-EXT-STS:task_state"] != "deleting":
                    self._compute.delete(f"/servers/{server['id']}")
            if time.monotonic() > deadline:
                fail(f"{len(servers)} server(s) are not gone after {self._options.timeout:g} s")
            time.sleep(POLL)
        for group in self._get("/os-server-groups", "server_groups"):
            if group["name"].startswith("race-"):
                self._compute.delete(f"/os-server-groups/{group['id']}")

    def _boot(self, server: Server, group: str, start: threading.Barrier, show: Callable[[Server], None]) -> None:
        body = {
            "server": {
                "name": server.name,
                "imageRef": self._image["id"],
                "flavorRef": self._flavor["id"],
                "networks": "none",
                "metadata": MARK,
            },
            "os:scheduler_hints": {"group": group},
        }
        start.wait()
        began = time.monotonic()
        try:
            server.id = self._post("/servers", body)["server"]["id"]
            self._wait(server, began)
        except (keystoneauth1.exceptions.ClientException, openstack.exceptions.SDKException) as error:
            server.status, server.why = "FAILED", str(error)
        server.seconds = time.monotonic() - began
        show(server)

    def _wait(self, server: Server, began: float) -> None:
        while time.monotonic() < began + self._options.timeout:
            found = self._compute.get(f"/servers/{server.id}", microversion=MICROVERSION)
            openstack.exceptions.raise_from_response(found)
            server.settle(found.json()["server"])
            if server.status != "BUILD":
                return
            time.sleep(POLL)
        server.status, server.why = "STUCK", f"still in BUILD after {self._options.timeout:g} s"

    def _mine(self) -> list[dict[str, Any]]:
        servers = self._get("/servers/detail", "servers")
        return [server for server in servers if server.get("metadata", {}).get("made_by") == MARK["made_by"]]

    def _count_hosts(self) -> int | None:
        """Count the compute services that are up and enabled; only an administrator may."""
        answer = self._compute.get("/os-services?binary=nova-compute", microversion=MICROVERSION)
        if answer.status_code != 200:
            return None
        services = answer.json()["services"]
        return sum(1 for service in services if (service["state"], service["status"]) == ("up", "enabled"))

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._compute.post(path, json=body, microversion=MICROVERSION)
        openstack.exceptions.raise_from_response(answer)
        return dict(answer.json())

    def _get(self, path: str, what: str) -> list[dict[str, Any]]:
        answer = self._compute.get(path, microversion=MICROVERSION)
        openstack.exceptions.raise_from_response(answer)
        return list(answer.json()[what])

    def _endpoint(self, service: str) -> str:
        found = self._cloud.session.get_endpoint(service_type=service, interface="public")
        return str(found or fail(f"the cloud has no {service} service")).rstrip("/").removesuffix("/v2")

    def _find(self, kind: str, url: str, what: str, wanted: str | None) -> dict[str, Any]:
        return _choose(kind, self._cloud.session.get(url).json()[what], wanted)


def _choose(kind: str, found: list[dict[str, Any]], wanted: str | None) -> dict[str, Any]:
    """Take the one that was asked for by id or name, or the first."""
    for each in found:
        if wanted is None or wanted in (each["id"], each["name"]):
            return each
    return fail(f"there is no {kind} {wanted}" if wanted else f"the cloud has no {kind}; create one first")


def _connect(options: argparse.Namespace) -> Any:
    if options.cloud_url:
        if not os.environ.get("OS_PASSWORD"):
            fail("--cloud-url needs OS_PASSWORD, and OS_USERNAME and OS_PROJECT_NAME unless both are admin")
        return openstack.connect(
            auth_url=options.cloud_url,
            username=os.environ.get("OS_USERNAME", "admin"),
            password=os.environ["OS_PASSWORD"],
            project_name=os.environ.get("OS_PROJECT_NAME", "admin"),
            user_domain_name="Default",
            project_domain_name="Default",
            load_yaml_config=False,
            load_envvars=False,
        )
    return openstack.connect(cloud=options.cloud)


def fail(message: str) -> NoReturn:
    print(f"race.py: error: {message}", file=sys.stderr)
    sys.exit(2)


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=_at_least_one, default=1, help="how often (default: %(default)s)")
    parser.add_argument("--servers", type=_at_least_one, default=4, help="boots per round (default: %(default)s)")
    parser.add_argument(
        "--policy",
        default="anti-affinity",
        choices=["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"],
        help="the server group's policy (default: %(default)s)",
    )
    parser.add_argument("--hosts", type=_at_least_one, help="hosts with room (default: compute services that are up)")
    parser.add_argument("--cloud", help="a cloud of clouds.yaml (default: OS_CLOUD, or the OS_* variables)")
    parser.add_argument(
        "--cloud-url",
        help="the identity service's URL, as http://127.0.0.1:8774/v3, instead of a clouds.yaml; OS_USERNAME, "
        "OS_PASSWORD and OS_PROJECT_NAME say who asks",
    )
    parser.add_argument("--image", help="name or id of the image (default: the first)")
    parser.add_argument("--flavor", help="name or id of the flavor (default: the smallest)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds that a boot may take (default: 120)")
    parser.add_argument("--keep", action="store_true", help="keep the last round's servers to look at")
    return parser.parse_args()


def _show(server: Server) -> None:
    print(f"  {server}", flush=True)


def main() -> int:
    options = _arguments()
    try:
        race = Race(options)
        race.clear()
        totals = Totals()
        for number in range(1, options.rounds + 1):
            print(f"round {number}: {options.servers} boots at once, policy {options.policy}", flush=True)
            totals.add(race.run(number, _show), options.policy, race.room)
            if number < options.rounds or not options.keep:
                race.clear()
    except (keystoneauth1.exceptions.ClientException, openstack.exceptions.SDKException) as error:
        fail(str(error).split("\n", 1)[0])
    print(totals.report(options.rounds))
    is_good = not (totals.violations or totals.wrongly_refused or totals.statuses["STUCK"] or totals.statuses["FAILED"])
    return 0 if is_good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

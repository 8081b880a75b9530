# SPDX-License-Identifier: Apache-2.0
"""Whatever several clients ask of the same servers at once, in any order, with hosts that fail, hang and come back.

Each step issues a handful of requests side by side and does not wait for them. What the books say must agree at every
moment; when all has ended, so must the domains and disks of the hosts, and every server must be in a state that it can
leave. Requests that a server's state does not allow are refused, which is no failure.
"""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from nova_lite import audit, exception
from nova_lite.db import drains
from nova_lite.db.session import Database
from tests.fixtures import faults, whereabouts
from tests.fixtures.books import disagreements
from tests.fixtures.client import ApiError, Client, wait_until_empty
from tests.fixtures.inside import InsideCloud
from tests.functional.moves.conftest import SETTINGS

LOG = logging.getLogger(__name__)

HOSTS = ("host1", "host2", "host3")
CLIENTS = 4
# Longer than the longest delay and a few leases; nothing may take so long that was accepted.
PATIENCE = 40

_LIVE = {"host": None, "block_migration": "auto"}
ACTIONS: dict[str, Callable[[str], dict[str, Any]]] = {
    "resize to large": lambda large: {"resize": {"flavorRef": large}},
    "confirm": lambda _large: {"confirmResize": None},
    "revert": lambda _large: {"revertResize": None},
    "migrate": lambda _large: {"migrate": None},
    "live-migrate": lambda _large: {"os-migrateLive": _LIVE},
    "stop": lambda _large: {"os-stop": None},
    "start": lambda _large: {"os-start": None},
    "reboot": lambda _large: {"reboot": {"type": "SOFT"}},
    "reboot hard": lambda _large: {"reboot": {"type": "HARD"}},
    "pause": lambda _large: {"pause": None},
    "unpause": lambda _large: {"unpause": None},
}
ASKED = (*ACTIONS, *("resize to large", "migrate", "live-migrate", "live-migrate") * 2, "abort", "force", "delete")
FAILING = (
    *("spawn", "destroy", "prepare_destination", "move_out", "finish_migration", "restore", "discard", "clean"),
    *("live_migrate", "live_migrate_end", "land", "power_on", "power_off", "reboot", "pause"),
)
FAULTS: tuple[dict[str, Any], ...] = ({"delay": 0.2}, {"delay": 0.7}, {"fail": "out of luck"}, {"hang": True})


class AnyOrder(RuleBasedStateMachine):
    """One history; the cloud is the module's, and each history leaves it empty."""

    cloud: ClassVar[InsideCloud]
    servers: Bundle[str] = Bundle("servers")

    def __init__(self) -> None:
        super().__init__()
        self.client: Client = self.cloud.client()
        self.db = Database(self.cloud.conf)
        self.clients = ThreadPoolExecutor(CLIENTS)
        self.files = Path(self.cloud.conf.fake.domains_path)
        self.small = self.client.flavor("small")
        self.large = self.client.flavor("large", vcpus=2, ram=1024, disk=2)
        self.client.image()
        self.groups: list[str | None] = [None]
        self.fenced: str | None = None
        self.began = time.monotonic()
        self.story: list[str] = []
        self.failed = False
        self.evacuated = False

    def teardown(self) -> None:
        try:
            if not self.failed:
                self.all_ends()
                self.everything_can_leave()
                self.nothing_is_left()
        finally:
            self._forgive()
            self.clients.shutdown()
            self.db.close()

    # -- what users do

    @initialize()
    def groups_are_made(self) -> None:
        self.groups += [self.client.group("anti-affinity"), self.client.group("affinity")]

    @rule(target=servers, groups=st.lists(st.integers(0, 2), min_size=1, max_size=3))
    def boot(self, groups: list[int]) -> Any:
        def one(number: int) -> str:
            server = self.client.boot(f"server-{number}", self.small, self.groups[number])
            self._tell(f"boot {server} in group {number}")
            return server

        return multiple(*self.clients.map(one, groups))

    @rule(asked=st.lists(st.tuples(servers, st.sampled_from(ASKED)), min_size=1, max_size=6))
    def ask(self, asked: list[tuple[str, str]]) -> None:
        list(self.clients.map(self._ask, asked))

    def _ask(self, asked: tuple[str, str]) -> None:
        server, what = asked
        answer = "accepted"
        try:
            if what == "delete":
                self.client.call("DELETE", f"/servers/{server}")
            elif what in ("abort", "force"):
                answer = self._wish(server, what)
            else:
                self.client.call("POST", f"/servers/{server}/action", ACTIONS[what](self.large))
        except ApiError as error:
            answer = self._refusal(error, what, server)
        self._tell(f"{what} {server}: {answer}")

    def _refusal(self, error: ApiError, what: str, server: str) -> str:
        assert error.status in (400, 403, 404, 409), self._explain([f"{what} {server}: {error}"])
        return str(error)[:100]

    def _wish(self, server: str, what: str) -> str:
        path = f"/servers/{server}/migrations"
        found = self.client.get(path)["migrations"]
        for each in found:
            if what == "abort":
                self.client.call("DELETE", f"{path}/{each['id']}")
            else:
                self.client.call("POST", f"{path}/{each['id']}/action", {"force_complete": None})
        return f"of {len(found)}"

    @rule(seconds=st.sampled_from((0.1, 0.5)))
    def time_passes(self, seconds: float) -> None:
        time.sleep(seconds)

    # -- what happens to hosts

    @rule(host=st.sampled_from(HOSTS), action=st.sampled_from(FAILING), fault=st.sampled_from(FAULTS))
    def a_host_gets_worse(self, host: str, action: str, fault: dict[str, Any]) -> None:
        path = faults.control_file(self.cloud.directory)
        known = json.loads(path.read_text()) if path.exists() else {}
        known.setdefault(host, {})[action] = fault
        faults.injected(self.cloud.directory, known).__enter__()
        self._tell(f"{host} {action} {fault}")

    @rule()
    def hosts_get_better(self) -> None:
        self._forgive()

    def _forgive(self) -> None:
        faults.control_file(self.cloud.directory).unlink(missing_ok=True)
        self._tell("no faults any more")

    @rule(host=st.sampled_from(HOSTS))
    def a_host_is_fenced(self, host: str) -> None:
        """Force a host down, one at a time, and ask for evacuations of all that is there."""
        if self.fenced is not None:
            return
        self._force_down(host, True)
        self.fenced = host
        found = self.client.get(f"/servers/detail?all_tenants=1&host={host}")["servers"]
        list(self.clients.map(self._evacuate, [each["id"] for each in found]))

    def _evacuate(self, server: str) -> None:
        answer = "accepted"
        try:
            self.client.call("POST", f"/servers/{server}/action", {"evacuate": {}})
        except ApiError as error:
            answer = self._refusal(error, "evacuate", server)
        else:
            self.evacuated = True
        self._tell(f"evacuate {server}: {answer}")

    @rule()
    def the_host_is_back(self) -> None:
        """Put it back into service, which is refused while servers are evacuated from it."""
        with suppress(ApiError):
            if self.fenced is not None:
                self._force_down(self.fenced, False)
            self.fenced = None

    def _force_down(self, host: str, down: bool) -> None:
        (found,) = self.client.get(f"/os-services?binary=nova-compute&host={host}")["services"]
        self.client.call("PUT", f"/os-services/{found['id']}", {"forced_down": down})
        self._tell(f"{host} is {'down' if down else 'up'}")

    @rule(host=st.sampled_from(HOSTS), parallel=st.integers(1, 2))
    def drain(self, host: str, parallel: int) -> None:
        with suppress(exception.Conflict):
            self.db.write(lambda conn: drains.start(conn, host, parallel))
            self._tell(f"drain {host}")

    @rule(host=st.sampled_from(HOSTS))
    def end_drain(self, host: str) -> None:
        with suppress(exception.NotFound):
            self.db.write(lambda conn: drains.cancel(conn, host))
            self._tell(f"drain of {host} cancelled")
        self._enable(host)

    def _enable(self, host: str) -> None:
        (found,) = self.client.get(f"/os-services?binary=nova-compute&host={host}")["services"]
        self.client.call("PUT", f"/os-services/{found['id']}", {"status": "enabled"})

    # -- what must be true

    @invariant()
    def the_books_agree_at_every_moment(self) -> None:
        found = self._findings(audit.PATIENCE)
        assert not found, self._explain(found)

    def _findings(self, patience: float) -> list[audit.Finding]:
        """Audit. Whoever leaves a dead host leaves members of an affinity group behind that cannot be evacuated."""
        found = audit.find(audit.look(self.db, patience))
        return [each for each in found if not (self.evacuated and "The affinity group is on" in each.sentence)]

    def _disagreements(self) -> list[str]:
        found = disagreements(self.cloud.database)
        return [each for each in found if not (self.evacuated and each.startswith("affinity group"))]

    @rule()
    def all_ends(self) -> None:
        """Mend the hosts, and wait until nothing is being done; then all agree: books, domains, disks."""
        self._forgive()
        for host in HOSTS:
            self.end_drain(host)
        while self.fenced is not None:
            self._until(self._at_work)
            self.the_host_is_back()
        self._until(self._at_work)
        self._tell("quiet")
        self._until(lambda: self._findings(0))
        self._until(self._disagreements)
        self._until(self._amiss_on_hosts)

    def _at_work(self) -> list[Any]:
        return whereabouts.at_work(self.db.engine)

    def _amiss_on_hosts(self) -> list[str]:
        return whereabouts.amiss(self.db.engine, self.files)

    def everything_can_leave(self) -> None:
        """Bring every server that is not in ERROR to ACTIVE, by what its state allows."""
        ways = {"VERIFY_RESIZE": "confirmResize", "SHUTOFF": "os-start", "PAUSED": "unpause"}
        for server in self.client.servers():
            if server["status"] in ways:
                self.client.call("POST", f"/servers/{server['id']}/action", {ways[server["status"]]: None})
        self._until(self._at_work)
        # One that was stopped before it was moved is SHUTOFF now.
        odd = [each for each in self.client.servers() if each["status"] not in ("ACTIVE", "ERROR", "SHUTOFF")]
        assert not odd, self._explain(odd)

    def nothing_is_left(self) -> None:
        for server in self.client.servers():
            self.client.call("DELETE", f"/servers/{server['id']}")
        self._until(self.client.servers)
        for group in self.client.get("/os-server-groups")["server_groups"]:
            self.client.call("DELETE", f"/os-server-groups/{group['id']}")
        self._until(lambda: self._findings(0))
        self._until(lambda: list(self.files.glob("*/*.*")))
        with self.db.engine.connect() as conn:
            used = conn.execute(sa.text("SELECT host, used_vcpus, instances, building FROM compute_nodes")).all()
            held = conn.execute(sa.text("SELECT instances, cores, ram FROM quota_usages")).all()
        assert all(not any(row[1:]) for row in used), self._explain(used)
        assert all(not any(row) for row in held), self._explain(held)

    def _until(self, look: Callable[[], list[Any]]) -> None:
        try:
            wait_until_empty(look, PATIENCE)
        except TimeoutError as error:
            raise AssertionError(self._explain([error])) from error

    def _tell(self, what: str) -> None:
        self.story.append(f"{time.monotonic() - self.began:7.2f} {what}")

    def _explain(self, found: Sequence[Any]) -> str:
        """Tell the story; also to the log, since no second run is like the first."""
        self.failed = True
        text = "\n".join([*map(str, found), "The story:", *self.story])
        LOG.error("%s", text)
        return text


@pytest.fixture(scope="module", autouse=True)
def a_cloud() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as directory:
        AnyOrder.cloud = InsideCloud(Path(directory), SETTINGS)
        try:
            yield
        finally:
            AnyOrder.cloud.stop()


def _settings(examples: int) -> settings:
    """Return settings for histories that no second run repeats: there is nothing to shrink or to remember."""
    return settings(
        max_examples=examples,
        stateful_step_count=14,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


class AnyOrderForLong(AnyOrder):
    """The same, many times."""


AnyOrder.TestCase.settings = _settings(8)
AnyOrderForLong.TestCase.settings = _settings(60)
test_whatever_is_asked_in_any_order = AnyOrder.TestCase
test_whatever_is_asked_in_any_order_for_long = pytest.mark.long(AnyOrderForLong.TestCase)

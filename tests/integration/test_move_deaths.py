# SPDX-License-Identifier: Apache-2.0
"""kill -9 in the middle of moves, of each process at each step: every move still ends, done or undone, and all agree.

Several servers move at once; the first that comes to a moment takes the process with it, the others are wherever they
are. Who died is started again, as an init system would.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite import audit
from nova_lite.db.session import Database
from nova_lite.objects import move as steps
from tests.fixtures import whereabouts
from tests.fixtures.books import disagreements
from tests.fixtures.client import wait_until_empty
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.mortal import MortalCloud
from tests.fixtures.movers import Movers
from tests.fixtures.rabbitmq import RabbitMQ
from tests.integration.conftest import open_at

SETTINGS = {
    # Longer than a process takes to start again.
    "DEFAULT": {"service_down_time": "60"},
    "conductor": {"lease": "2", "compute_down_patience": "60", "disable_after_build_failures": "0"},
    "compute": {"inventory_interval": "1", "conductor_timeout": "3"},
    "fake": {"live_migration_seconds": "0.3"},
}
# How long it may take after a death until all has ended: a few leases, the start of a process, two reports of hosts.
PATIENCE = 60
BROKEN = {"fail": "the cable is broken"}
SERVERS = 3


class Deaths:
    """A cloud, servers on host1, and what is done to them."""

    def __init__(self, cloud: MortalCloud) -> None:
        self.cloud = cloud
        self.movers = Movers(cloud)
        self.db: Database = open_at(cloud.database)
        self.servers: list[str] = []

    def boot(self) -> None:
        small, client = self.movers.small, self.movers.client
        self.servers = [client.boot(f"server-{n}", small, availability_zone="nova:host1") for n in range(SERVERS)]
        assert {each["status"] for each in client.settle(self.servers)} == {"ACTIVE"}

    def act(self, action: str, value: Any = None) -> None:
        for server in self.servers:
            self.movers.act(server, action, value)

    # -- what moves; each returns the statuses in which the servers may end

    def resize(self) -> set[str]:
        self.act("resize", {"flavorRef": self.movers.large})
        return {"VERIFY_RESIZE"}

    def live(self) -> set[str]:
        self.act("os-migrateLive", {"host": "host2", "block_migration": "auto"})
        return {"ACTIVE"}

    def migrate_to_host2(self) -> set[str]:
        self.act("migrate", {"host": "host2"})
        return {"VERIFY_RESIZE"}

    def waiting(self) -> None:
        self.migrate_to_host2()
        self.ends()

    def confirm(self) -> set[str]:
        self.act("confirmResize")
        return {"ACTIVE"}

    def revert(self) -> set[str]:
        self.act("revertResize")
        return {"ACTIVE"}

    def evacuate(self) -> set[str]:
        self.act("evacuate", {"host": "host2"})
        return {"ACTIVE", "SHUTOFF"}

    def host1_is_dead(self) -> None:
        self.cloud.mortals["host1"].kill()
        self.movers.force_down("host1")

    def host1_returns(self) -> None:
        """Let it come back and clean up, which it does before it is in service again."""
        self.ends()
        self.movers.force_down("host1", False)

    # -- how it ends

    def ends(self) -> None:
        """Start again whoever dies, until nothing is being done."""
        self._until_nothing(lambda: whereabouts.at_work(self.db.engine))

    def evacuated(self) -> None:
        """Start again whoever dies but host1, until all servers are rebuilt; then host1 returns."""
        active = sa.text("SELECT kind, instance_uuid, step FROM operations WHERE status = 'active'")
        self._until_nothing(lambda: list(self.db.read(lambda conn: conn.execute(active).all())), but="host1")
        self.host1_returns()

    def _until_nothing(self, look: Callable[[], list[Any]], but: str = "") -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            if self.cloud.revive(but):
                deadline = time.monotonic() + PATIENCE
            elif not (found := look()):
                return
            else:
                assert time.monotonic() < deadline, f"{found}\n{self.cloud.logs()}"
            time.sleep(0.1)

    def all_agrees(self, statuses: set[str]) -> None:
        found = self.movers.client.servers(self.servers)
        assert {each["status"] for each in found} <= statuses, f"{found}\n{self.cloud.logs()}"
        wait_until_empty(lambda: audit.find(audit.look(self.db, patience=0)), 15)
        wait_until_empty(lambda: disagreements(self.cloud.database), 15)
        wait_until_empty(lambda: whereabouts.amiss(self.db.engine, self.movers.domains_path), 15)
        assert not self.cloud.still_to_die()


@pytest.fixture(scope="module")
def mortal_cloud(
    mariadb: MariaDB, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MortalCloud]:
    cloud = None
    directory = tmp_path_factory.mktemp("cloud")
    try:
        cloud = MortalCloud(directory, mariadb.url(mariadb.create_database()), rabbitmq.vhost_url(), SETTINGS)
        yield cloud
    finally:
        if cloud is not None:
            cloud.stop()


@pytest.fixture
def deaths(mortal_cloud: MortalCloud) -> Iterator[Deaths]:
    made = Deaths(mortal_cloud)
    made.boot()
    yield made
    mortal_cloud.forget()
    mortal_cloud.revive()
    made.movers.clear()
    made.db.close()


# -- what dies in which order, each in one move of several servers: (process, moments)

Fates = dict[str, tuple[str, ...]]


def fated(deaths: Deaths, fates: Fates, move: Callable[[Deaths], set[str]], **broken: Any) -> None:
    """Do a move in which these processes die, and see it end."""
    for name, moments in fates.items():
        deaths.cloud.will_die(name, *moments)
    with deaths.movers.faults(**{"*": broken}):
        statuses = move(deaths)
        deaths.ends()
        if broken:
            statuses = {"ACTIVE"}
    deaths.all_agrees(statuses)


@pytest.mark.long
def test_a_resize(deaths: Deaths) -> None:
    # All three servers may go to either host: whoever dies, the moment comes.
    fates: Fates = {
        "conductor": ("tell prepare before", "hear move_out before", "end finish before"),
        "scheduler": ("grant any before",),
        "host1": ("do move_out after",),
    }
    fated(deaths, fates, Deaths.resize)


def test_a_cold_migration(deaths: Deaths) -> None:
    fates: Fates = {
        "conductor": ("claim prepare after", "tell finish after"),
        "host1": ("accept move_out before",),
        "host2": ("begin prepare after", "do finish after"),
    }
    fated(deaths, fates, Deaths.migrate_to_host2)


@pytest.mark.long
def test_a_live_migration(deaths: Deaths) -> None:
    fates: Fates = {
        "conductor": ("select any after", "hear live_migrate before", "tell clean before"),
        "host1": ("leave any before", "do clean after"),
        "host2": ("do prepare after", "report land before"),
    }
    fated(deaths, fates, Deaths.live)


@pytest.mark.long
def test_a_confirmation(deaths: Deaths) -> None:
    deaths.waiting()
    fates: Fates = {"conductor": ("begin clean after", "end clean before"), "host1": ("do clean after",)}
    fated(deaths, fates, Deaths.confirm)


@pytest.mark.long
def test_a_revert(deaths: Deaths) -> None:
    deaths.waiting()
    fates: Fates = {
        "conductor": ("tell restore before",),
        "host1": ("do restore after",),
        "host2": ("do discard after",),
    }
    fated(deaths, fates, Deaths.revert)


@pytest.mark.long
def test_an_evacuation(deaths: Deaths) -> None:
    deaths.host1_is_dead()
    deaths.cloud.will_die("conductor", "hear rebuild before")
    deaths.cloud.will_die("host2", "begin rebuild after", "do rebuild after")
    statuses = deaths.evacuate()
    deaths.evacuated()
    deaths.all_agrees(statuses)


def test_a_live_migration_whose_source_dies_as_the_guest_has_come_over(deaths: Deaths) -> None:
    deaths.cloud.will_die("host1", "leave any before")
    statuses = deaths.live()
    wait_until_empty(lambda: [] if deaths.cloud.mortals["host1"].process.poll() is not None else ["alive"], 30)
    deaths.movers.force_down("host1")
    deaths.evacuated()
    deaths.all_agrees(statuses)
    # The one that took the source down had arrived; the others had not, or had as well.
    assert "host2" in {deaths.movers.host_of(server) for server in deaths.servers}


@pytest.mark.long
def test_a_move_that_is_undone(deaths: Deaths) -> None:
    fates: Fates = {
        "conductor": ("tell discard before", "end restore before"),
        "host1": ("report restore before",),
        "host2": ("do discard after",),
    }
    fated(deaths, fates, Deaths.migrate_to_host2, finish_migration=BROKEN)


# -- every moment of every step by itself

_MOVES = {
    "migrate": (Deaths.migrate_to_host2, (steps.PREPARE, steps.MOVE_OUT, steps.FINISH), {}),
    "live": (Deaths.live, (steps.PREPARE, steps.LIVE_MIGRATE, steps.LAND, steps.CLEAN), {}),
    "evacuate": (Deaths.evacuate, (steps.REBUILD,), {}),
    "confirm": (Deaths.confirm, (steps.CLEAN,), {}),
    "revert": (Deaths.revert, (steps.DISCARD, steps.RESTORE), {}),
    "undone": (Deaths.migrate_to_host2, (steps.DISCARD, steps.RESTORE), {"move_out": BROKEN}),
    "undone late": (Deaths.migrate_to_host2, (steps.DISCARD, steps.RESTORE), {"finish_migration": BROKEN}),
    "undone live": (Deaths.live, (steps.DISCARD, steps.RESTORE), {"live_migrate_end": BROKEN}),
}
_AT_SOURCE = (steps.MOVE_OUT, steps.LIVE_MIGRATE, steps.CLEAN, steps.RESTORE)
_CLAIMING = (steps.PREPARE, steps.REBUILD)
_OF_CONDUCTORS = (("tell", "before"), ("tell", "after"), ("hear", "before"), ("hear", "after"))
_OF_COMPUTES = (("accept", "before"), ("begin", "before"), ("begin", "after"), ("do", "after"), ("report", "after"))


def _every_fate() -> Iterator[Any]:
    for name, (_move, its_steps, _broken) in _MOVES.items():
        for step in its_steps:
            begun = "claim" if step in _CLAIMING else "begin"
            ours = [*_OF_CONDUCTORS, (begun, "before"), (begun, "after")]
            if (step, name) in (("finish", "migrate"), ("clean", "live"), ("clean", "confirm"), ("restore", "revert")):
                ours.append(("end", "before"))
            side = "host1" if step in _AT_SOURCE else "host2"
            for who, moments in (("conductor", ours), (side, _OF_COMPUTES)):
                for moment, when in moments:
                    yield pytest.param(name, who, f"{moment} {step} {when}", id=f"{name}-{who}-{moment}-{step}-{when}")
        if name in ("migrate", "live", "evacuate"):
            yield pytest.param(name, "scheduler", "grant any before", id=f"{name}-scheduler-before-grant")
            yield pytest.param(name, "scheduler", "grant any after", id=f"{name}-scheduler-after-grant")
            for when in ("before", "after"):
                yield pytest.param(name, "conductor", f"select any {when}", id=f"{name}-conductor-select-{when}")
    for when in ("before", "after"):
        yield pytest.param("live", "host1", f"leave any {when}", id=f"live-host1-leave-{when}")


@pytest.mark.long
@pytest.mark.parametrize(("name", "who", "moment"), list(_every_fate()))
def test_each_moment(deaths: Deaths, name: str, who: str, moment: str) -> None:
    move, _steps, broken = _MOVES[name]
    if name in ("confirm", "revert"):
        deaths.waiting()
    if name == "evacuate":
        deaths.host1_is_dead()
        deaths.cloud.will_die(who, moment)
        statuses = move(deaths)
        deaths.evacuated()
        deaths.all_agrees(statuses)
    else:
        fated(deaths, {who: (moment,)}, move, **broken)

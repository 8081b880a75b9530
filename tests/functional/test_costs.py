# SPDX-License-Identifier: Apache-2.0
"""What a boot, a delete and a placement cost in SQL statements and messages; whoever makes them dearer says so here.

Statements are counted as they are given to the driver. On SQLite that includes neither BEGIN nor COMMIT; what is
written for many rows at once counts as one.
"""

from __future__ import annotations

import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from oslo_messaging.transport import Transport

from nova_lite import conf as nova_conf
from nova_lite.db import addresses, instances, migration
from nova_lite.db.session import Database
from nova_lite.network import builtin
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.group import AFFINITY, ANTI_AFFINITY
from nova_lite.objects.instance import NetworkRequest
from tests.fixtures.cloud import wait_for
from tests.fixtures.inside import InsideCloud
from tests.fixtures.scheduling import Scheduling
from tests.fixtures.statements import statements

# What is done by the clock would be counted with what is done for a server.
RARELY = {
    "DEFAULT": {"report_interval": "600", "service_down_time": "6000"},
    "conductor": {"lease": "600", "sweep_interval": "600", "drain_interval": "600"},
    # One scheduler: the first look of another, which the warm-up did not reach, would be counted with a boot.
    "scheduler": {"workers": "1", "reap_interval": "600", "liveness_interval": "600"},
    "compute": {"inventory_interval": "600"},
    "fake": {"vcpus": "64", "memory_mb": "65536"},
    "oslo_messaging_notifications": {"driver": "messagingv2"},
}


# -- placing


@pytest.fixture
def scheduling(tmp_path: Path) -> Iterator[Scheduling]:
    made = Scheduling(tmp_path, tmp_path / "template.sqlite")
    for number in range(5):
        made.add_host(f"host{number}", vcpus=100, memory_mb=100_000)
    yield made
    made.close()


@pytest.mark.parametrize(("size", "reread"), [(1, 1), (10, 2), (60, 2)])
def test_a_batch_costs_7_statements_whatever_its_size(scheduling: Scheduling, size: int, reread: int) -> None:
    placer = scheduling.placer()
    placer.place([scheduling.request()])  # reads all hosts, aggregates and heartbeats
    specs = [scheduling.request() for _number in range(size)]

    with statements() as found:
        selections = placer.place(specs)

    assert all(selection.grant_id for selection in selections)
    assert len(found) == 2 + 3 + reread, found  # look, write, reread


@pytest.mark.parametrize(("policy", "most"), [(ANTI_AFFINITY, 14), (AFFINITY, 21)])
def test_a_group_costs_some_more(scheduling: Scheduling, policy: str, most: int) -> None:
    placer = scheduling.placer()
    group = scheduling.group(policy)
    placer.place([scheduling.request()])
    specs = [scheduling.request(group=group) for _number in range(4)]

    with statements() as found:
        selections = placer.place(specs)

    assert all(selection.grant_id for selection in selections)
    assert len(found) <= most * (1 + max(selection.fall_overs for selection in selections)), found


def test_a_no_costs_a_reading_of_everything_once_for_all(scheduling: Scheduling) -> None:
    placer = scheduling.placer()
    placer.place([scheduling.request()])
    specs = [scheduling.request(vcpus=1000) for _number in range(20)]

    with statements() as found:
        selections = placer.place(specs)

    assert not any(selection.grant_id for selection in selections)
    assert len(found) <= 9, found  # look 2, hosts and grants 5, ledger 2


# -- booting


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InsideCloud]:
    made = InsideCloud(tmp_path_factory.mktemp("costs"), RARELY)
    yield made
    made.stop()


class Cost:
    """Statements and messages so far; messages are by their kind: sent (casts and calls) and notifications."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.sent = self.notifications = 0


@contextmanager
def cost(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cost]:
    counted, lock = Cost(), threading.Lock()
    send, notify = Transport._send, Transport._send_notification

    def counting_send(self: Transport, *arguments: Any, **more: Any) -> Any:
        with lock:
            counted.sent += 1
        return send(self, *arguments, **more)

    def counting_notify(self: Transport, *arguments: Any, **more: Any) -> Any:
        with lock:
            counted.notifications += 1
        return notify(self, *arguments, **more)

    with monkeypatch.context() as patch, statements() as counted.statements:
        patch.setattr(Transport, "_send", counting_send)
        patch.setattr(Transport, "_send_notification", counting_notify)
        yield counted


def wait_until_done(cloud: InsideCloud, notifications: int, counted: Cost) -> None:
    """Wait until no operation is active, past SQLAlchemy and the api, whose statements would be counted too."""
    path = cloud.database.removeprefix("sqlite:///")

    def is_done() -> bool:
        with sqlite3.connect(path) as connection:
            (active,) = connection.execute("SELECT count(*) FROM operations WHERE status = 'active'").fetchone()
        return active == 0 and counted.notifications >= notifications

    wait_for(is_done, 60)


def test_a_boot_and_a_delete(cloud: InsideCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    client = cloud.client()
    flavor = client.flavor()
    warm_up = client.boot("warm-up", flavor)
    client.settle([warm_up])
    client.delete([warm_up])

    with cost(monkeypatch) as boot:
        server = client.boot("server", flavor)
        wait_until_done(cloud, 2, boot)
    with cost(monkeypatch) as delete:
        client.call("DELETE", f"/servers/{server}")
        wait_until_done(cloud, 2, delete)

    # api 8, claim 2, gathering 2, placing 8, noting 5, consuming 10, publishing 12
    assert len(boot.statements) <= 47, boot.statements
    # to the conductor, to a scheduler, to the compute, for the claim, with the outcome
    assert (boot.sent, boot.notifications) == (5, 2)
    assert len(delete.statements) <= 30, delete.statements
    # to the conductor, to the compute, with the outcome
    assert (delete.sent, delete.notifications) == (3, 2)


def test_addresses_cost_little_and_the_same_for_many(tmp_path: Path) -> None:
    """Beside the boot of a server without: one transaction a batch of builds, one statement when they end."""
    conf = cfg.ConfigOpts()
    nova_conf.register(conf)
    conf([], project="nova-lite", default_config_files=[])
    conf.set_override("connection", f"sqlite:///{tmp_path}/books", "database")
    conf.set_override("subnet", "10.0.0.0/16", "network")
    conf.set_override("instances", -1, "quota")
    conf.set_override("cores", -1, "quota")
    network = builtin.read(conf)
    assert network is not None
    db = Database(conf)
    migration.sync(db)
    uuids = [str(uuid.uuid4()) for _ in range(40)]
    new = instances.NewInstances(
        uuids, uuids, uuids, Flavor("1", "f", 1, 64, 1), None, "r", networks=(NetworkRequest("auto"),)
    )
    db.write(lambda conn: instances.create(conn, conf, new, instances.Caller("p", "u", "req")))
    db.write(lambda conn: addresses.assign(conn, network, uuids[:1]))  # makes the network's row

    for some in (uuids[1:2], uuids[2:]):
        with statements() as found:
            given = db.write(lambda conn, some=some: addresses.assign(conn, network, some))  # type: ignore[misc]
        assert len(given) == len(some)
        assert len(found) == 6, found
    with statements() as found:
        db.write(lambda conn: addresses.assign(conn, network, uuids))
    assert len(found) == 1, found
    db.close()


def test_many_servers_of_one_request_share_their_cost(cloud: InsideCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    client = cloud.client()
    flavor = client.flavor()

    with cost(monkeypatch) as boot:
        client.boot("many", flavor, min_count=50, max_count=50)
        wait_until_done(cloud, 100, boot)

    assert len(boot.statements) <= 150, len(boot.statements)
    assert boot.sent <= 30

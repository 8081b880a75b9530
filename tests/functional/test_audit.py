# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: S608 - the statements are made of this file's own words
"""nova-lite-manage audit, on books into which every kind of contradiction is written by hand.

Operators of OpenStack clear such rows with SQL, from pages of instructions (the Nova guide on orphaned allocations is
one). Here each kind must be found with a proposal, be left alone without --fix, and be gone after it.
"""

from __future__ import annotations

import datetime
import io
import json
import logging
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from nova_lite import audit, conf
from nova_lite.cmd import manage as command
from nova_lite.db import allocations, builds, grants, instances, migration, registry
from nova_lite.db.grants import GrantRequest
from nova_lite.db.session import Database
from nova_lite.objects.build import BuildOutcome, Claim
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.instance import RUNNING, DomainInfo
from nova_lite.objects.node import NodeInventory
from nova_lite.objects.resources import Resources

FLAVOR = Flavor("1", "small", 1, 64, 1)
LATE = "'2001-01-01 00:00:00.000000'"


class Cloud:
    """Two hosts; the servers a and b, members of an anti-affinity group, ACTIVE on one each; and c, which waits."""

    def __init__(self, directory: Path, database: str | None = None) -> None:
        self.path = directory / "cloud.sqlite"
        self.config_file = directory / "nova-lite.conf"
        self.config_file.write_text(
            f"[DEFAULT]\nhost = here\nstate_path = {directory}\ntransport_url = fake://\n"
            f"[database]\nconnection = {database or f'sqlite:///{self.path}'}\n"
        )
        options = cfg.ConfigOpts()
        conf.register(options)
        options(["--config-file", str(self.config_file)], default_config_dirs=[])
        self.conf, self.db = options, Database(options)

    def build(self) -> None:
        """Write the books, as they are written in operation."""
        migration.sync(self.db)
        self.db.write(self._write)
        for name, node in (("a", 1), ("b", 2)):
            self._build(name, node)

    def close(self) -> None:
        self.db.close()

    def _write(self, conn: sa.Connection) -> None:
        for host in ("h1", "h2"):
            service = registry.register_service(conn, registry.COMPUTE, host, host)
            registry.register_node(conn, service, NodeInventory(f"node-{host}", host, host, Resources(8, 8192, 100)))
        group = sa.text(
            "INSERT INTO server_groups (uuid, project_id, user_id, name, policy, max_server_per_host, has_rule, "
            "ticket, created_at, updated_at) VALUES ('group', 'p', 'u', 'g', 'anti-affinity', 1, false, 0, "
            f"{LATE}, {LATE})"
        )
        conn.execute(group)
        for name, group_id in (("a", 1), ("b", 1), ("c", None)):
            new = instances.NewInstances([name], [name], [name], FLAVOR, None, "r", group_id=group_id)
            instances.create(conn, self.conf, new, instances.Caller("p", "u", f"req-{name}"))

    def _build(self, name: str, node_id: int) -> None:
        operation = self.one(f"SELECT uuid FROM operations WHERE instance_uuid = '{name}'")
        self.db.write(lambda c: grants.write(c, [GrantRequest(name, "", node_id, FLAVOR.resources, 1)], 60))
        grant = self.one(f"SELECT id FROM grants WHERE consumer = '{name}'")
        host = f"h{node_id}"
        self.db.write(lambda c: allocations.consume(c, [Claim(operation, name, grant, node_id, host)], 60))
        self.db.write(lambda c: builds.complete(c, [BuildOutcome(operation, name, host, True, RUNNING)]))

    def one(self, query: str) -> Any:
        with closing(sqlite3.connect(self.path)) as raw:
            return raw.execute(query).fetchone()[0]

    def spoil(self, *statements: str) -> None:
        """Change rows behind everybody's back, foreign keys included."""
        with closing(sqlite3.connect(self.path)) as raw, raw:
            for statement in statements:
                raw.execute(statement)

    def dump(self) -> str:
        with closing(sqlite3.connect(self.path)) as raw:
            return "\n".join(raw.iterdump())

    def audit(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run the command; return its exit status and what it printed as JSON."""
        out = io.StringIO()
        with redirect_stdout(out):
            status = command.run(["audit", "--json", *arguments, "--config-file", str(self.config_file)])
        conf.CONF.reset()
        return status, json.loads(out.getvalue())


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Cloud(tmp_path_factory.mktemp("books"))
    made.build()
    made.close()
    return made.path


@pytest.fixture
def cloud(tmp_path: Path, books: Path) -> Iterator[Cloud]:
    shutil.copy(books, tmp_path / "cloud.sqlite")
    made = Cloud(tmp_path)
    yield made
    made.close()
    conf.CONF.reset()
    logging.disable(logging.NOTSET)


@dataclass(frozen=True)
class Orphan:
    """A way to spoil the books, and the kinds of finding that it makes, the first of them its own."""

    kind: str
    statements: tuple[str, ...]
    others: tuple[str, ...] = ()
    mended: bool = True


def _grant(consumer: str, node: int = 1, made: str = LATE, expires: str = "'2999-01-01 00:00:00.000000'") -> str:
    return (
        "INSERT INTO grants (consumer, migration, node_id, ticket, vcpus, memory_mb, disk_gb, created_at, expires_at) "
        f"VALUES ('{consumer}', '', {node}, 99, 1, 64, 1, {made}, {expires})"
    )


def _allocation(consumer: str, migration_uuid: str = "") -> str:
    return (
        "INSERT INTO allocations (consumer, migration, node_id, vcpus, memory_mb, disk_gb, created_at) "
        f"VALUES ('{consumer}', '{migration_uuid}', 1, 1, 64, 1, {LATE})"
    )


def _move(status: str, source: int = 1) -> str:
    """Make a move of server a from one node to the next."""
    return (
        "INSERT INTO migrations (uuid, instance_uuid, operation_uuid, type, status, open, source_compute, source_node, "
        "source_node_id, dest_compute, dest_node_id, old_flavor, new_flavor, old_vm_state, held_cores, held_ram, wish, "
        "shared_disks, project_id, user_id, created_at, updated_at) "
        f"VALUES ('move', 'a', 'over', 'migration', '{status}', TRUE, 'h{source}', 'h{source}', {source}, "
        f"'h{source + 1}', {source + 1}, '{{}}', '{{}}', 'active', 0, 0, '', FALSE, 'p', 'u', {LATE}, {LATE})"
    )


def _address(server: str, number: int, leaving: str | None = None) -> str:
    left = f"'{leaving}', {LATE}" if leaving else "NULL, NULL"
    return (
        "INSERT INTO addresses (network, address, mac, port, instance_uuid, leaving, leaving_since, created_at) "
        f"VALUES ('n', {number}, 'fa:16:3e:00:00:0a', 'p', '{server}', {left}, {LATE})"
    )


def _at(server: str, address: str) -> str:
    port = {"id": "p", "mac": "fa:16:3e:00:00:0a", "address": address, "prefix": 24, "network_id": "n", "network": "d"}
    networks = json.dumps([{"kind": "auto", "port": port}])
    return f"UPDATE instances SET networks = '{networks}' WHERE uuid = '{server}'"


_COUNT_H1 = (
    "UPDATE compute_nodes SET used_vcpus = 2, used_memory_mb = 128, used_disk_gb = 2, instances = 2 WHERE id = 1"
)
_DELETED = "UPDATE instances SET deleted = id, vm_state = 'deleted' WHERE uuid = 'a'"
_QUOTA_1_LESS = "UPDATE quota_usages SET instances = 2, cores = 2, ram = 128"
_END_C = "UPDATE operations SET status = 'failed' WHERE instance_uuid = 'c'"
_DELETED_C = "UPDATE instances SET deleted = id, vm_state = 'deleted' WHERE uuid = 'c'"
_REST_C = "UPDATE instances SET vm_state = 'error', task_state = NULL WHERE uuid = 'c'"

ORPHANS = [
    Orphan("node-used", ("UPDATE compute_nodes SET used_vcpus = 7 WHERE id = 1",)),
    Orphan("node-counters", ("UPDATE compute_nodes SET instances = 5 WHERE id = 1",)),
    Orphan("node-counters", ("UPDATE compute_nodes SET building = 1 WHERE id = 2",)),
    Orphan("node-overbooked", ("UPDATE compute_nodes SET total_memory_mb = 32 WHERE id = 1",), mended=False),
    Orphan("allocation-without-server", (_allocation("ghost"), _COUNT_H1)),
    Orphan("allocation-of-deleted-server", (_DELETED, _QUOTA_1_LESS)),
    Orphan("allocation-of-unplaced-server", (_allocation("c"), _COUNT_H1, _END_C, _REST_C)),
    Orphan(
        "allocation-elsewhere",
        ("UPDATE instances SET node_id = 2, host = 'h2', node = 'h2', group_id = NULL WHERE uuid = 'a'",),
    ),
    Orphan("allocation-size", ("UPDATE allocations SET memory_mb = 4 WHERE consumer = 'a'",), ("node-used",)),
    Orphan("allocation-group", ("UPDATE allocations SET group_id = NULL WHERE consumer = 'a'",)),
    Orphan("allocation-of-ended-move", (_allocation("a", "move"), _COUNT_H1)),
    Orphan("allocation-off-the-move", (_move("done", 2), _allocation("a", "move"), _COUNT_H1), mended=False),
    Orphan("move-unbooked", (_move("done"),), mended=False),
    Orphan("move-stuck", (_move("migrating"), _allocation("a", "move"), _COUNT_H1)),
    Orphan("server-unbooked", ("DELETE FROM allocations WHERE consumer = 'a'",), ("node-used", "node-counters")),
    Orphan("server-on-unknown-node", ("UPDATE instances SET node_id = 9 WHERE uuid = 'a'",), mended=False),
    Orphan("server-host-name", ("UPDATE instances SET host = 'h3' WHERE uuid = 'a'",)),
    Orphan("server-stuck", (_END_C,)),
    Orphan("server-stuck", ("UPDATE instances SET task_state = 'powering-off' WHERE uuid = 'a'",)),
    Orphan("server-stuck", ("UPDATE instances SET task_state = 'deleting' WHERE uuid = 'a'",)),
    Orphan("grant-without-server", (_grant("ghost"),)),
    Orphan(
        "grant-of-deleted-server",
        (_grant("a"), _DELETED, _QUOTA_1_LESS, "DELETE FROM allocations WHERE consumer = 'a'"),
        ("node-used", "node-counters"),
    ),
    Orphan("grant-expired", (_grant("c", expires=LATE),)),
    Orphan("grant-on-unknown-node", (_grant("c", node=9),)),
    Orphan("grant-of-placed-server", (_grant("a"),)),
    Orphan("group-broken", ("UPDATE server_groups SET policy = 'affinity'",), mended=False),
    Orphan("quota-usage", ("UPDATE quota_usages SET cores = 1000",)),
    Orphan("quota-usage", ("DELETE FROM quota_usages",)),
    Orphan("address-without-server", (_address("ghost", 167772170),)),
    Orphan("address-of-deleted-server", (_address("c", 167772170), _DELETED_C, _QUOTA_1_LESS, _END_C)),
    Orphan("address-unused", (_address("a", 167772170),)),
    Orphan("address-of-gone-host", (_address("ghost", 167772170, '[["h9", "h9"]]'),)),
    Orphan("address-unbooked", (_at("a", "10.0.0.10"),)),
    Orphan(
        "address-doubled",
        (_address("a", 167772170), _at("a", "10.0.0.10"), _at("b", "10.0.0.10")),
        mended=False,
    ),
    Orphan("operation-without-server", ("DELETE FROM instances WHERE uuid = 'c'", _QUOTA_1_LESS)),
    Orphan("operation-stuck", (f"UPDATE operations SET owner = 'gone', lease_expires_at = {LATE}",)),
]


def test_a_cloud_in_order_is_clean(cloud: Cloud) -> None:
    status, said = cloud.audit()
    assert (status, said["findings"], said["mended"]) == (0, [], [])
    assert said["skipped"] == ["Domains were not looked at: the bus is within the cloud's own process (fake://)."]
    assert set(audit.counts(cloud.db).values()) == {0}


@pytest.mark.parametrize("orphan", ORPHANS, ids=lambda orphan: orphan.kind)
def test_an_orphan_is_listed_left_alone_and_mended(cloud: Cloud, orphan: Orphan) -> None:
    cloud.spoil(*orphan.statements)
    before = cloud.dump()
    status, said = cloud.audit()
    found = [finding["kind"] for finding in said["findings"]]
    assert (status, set(found)) == (2, {orphan.kind, *orphan.others}), said
    mine = said["findings"][found.index(orphan.kind)]
    assert mine["sentence"] and mine["subject"]
    assert (mine["fix"] is not None) == orphan.mended
    assert mine["since"] or orphan.statements == ("DELETE FROM quota_usages",)
    assert cloud.dump() == before, "it changed something without --fix"
    assert audit.counts(cloud.db)[orphan.kind] >= 1

    status, said = cloud.audit("--fix")
    assert status == (0 if orphan.mended else 2), said["findings"]
    again, left = cloud.audit()
    assert [finding["kind"] for finding in left["findings"]] == ([] if orphan.mended else [orphan.kind])
    assert again == status


NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'"
_DELETEDNOW = _DELETED.replace("SET ", f"SET deleted_at = {NOW}, ")
_END_A = "DELETE FROM allocations WHERE consumer = 'a'"
_COUNT_NONE = (
    "UPDATE compute_nodes SET used_vcpus = 0, used_memory_mb = 0, used_disk_gb = 0, instances = 0 WHERE id = 1"
)

IN_FLIGHT = [
    Orphan("grant-of-deleted-server", (_grant("a", made=NOW), _DELETED, _QUOTA_1_LESS, _END_A, _COUNT_NONE)),
    Orphan("grant-of-deleted-server", (_grant("a"), _DELETEDNOW, _QUOTA_1_LESS, _END_A, _COUNT_NONE)),
    Orphan("grant-without-server", (_grant("ghost", made=NOW),)),
    Orphan("grant-of-placed-server", (_grant("a", made=NOW),)),
    Orphan("grant-on-unknown-node", (_grant("c", node=9, made=NOW),)),
    Orphan("grant-expired", (_grant("c", expires=NOW),)),
    Orphan("operation-stuck", (f"UPDATE operations SET owner = 'gone', lease_expires_at = {NOW}",)),
]


@pytest.mark.parametrize("orphan", IN_FLIGHT, ids=lambda orphan: orphan.kind)
def test_what_ends_by_itself_is_told_when_it_should_have_ended(cloud: Cloud, orphan: Orphan) -> None:
    cloud.spoil(*orphan.statements)
    before = cloud.dump()
    assert cloud.audit("--fix")[1]["findings"] == []
    assert cloud.dump() == before, "it mended what was in flight"
    assert set(audit.counts(cloud.db).values()) == {0}
    status, said = cloud.audit("--patience", "0")
    found = {finding["kind"]: finding for finding in said["findings"]}
    # No conductor has taken up the operation that c waits for.
    assert (status, found.keys()) == (2, {orphan.kind, "operation-stuck"})
    since = datetime.datetime.fromisoformat(found[orphan.kind]["since"])
    now = datetime.datetime.fromisoformat(cloud.one(f"SELECT {NOW}"))
    assert datetime.timedelta() <= now - since < datetime.timedelta(minutes=1)


def test_every_kind_that_may_be_in_flight_is_tried() -> None:
    domains = {kind for kind in audit.IN_FLIGHT if "domain" in kind}
    assert audit.IN_FLIGHT.keys() <= audit.REPAIRS.keys()
    assert {orphan.kind for orphan in IN_FLIGHT} == audit.IN_FLIGHT.keys() - domains


def test_a_repair_looks_again_before_it_changes_anything(cloud: Cloud) -> None:
    cloud.spoil(*next(orphan.statements for orphan in ORPHANS if orphan.kind == "server-unbooked"))
    found = audit.find(audit.look(cloud.db))
    cloud.audit("--fix")
    before = cloud.dump()
    assert [audit.repair(cloud.db, finding) for finding in found] == [False] * len(found)
    assert cloud.dump() == before


def test_the_list_is_for_people(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.spoil("UPDATE compute_nodes SET used_vcpus = 7 WHERE id = 1", "UPDATE server_groups SET policy = 'affinity'")
    assert command.run(["audit", "--config-file", str(cloud.config_file)]) == 2
    text = capsys.readouterr().out
    assert "node-used h1\n    Node h1 says that 7 VCPU, 64 MiB and 1 GiB are used" in text
    assert "--fix would set what is used to the sum of the allocations." in text
    assert "This needs a decision; --fix leaves it." in text
    assert text.endswith("2 findings.\n")


def test_domains_must_be_asked_if_they_are_asked_for(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(["audit", "--domains", "--config-file", str(cloud.config_file)]) == 1
    assert "fake://" in capsys.readouterr().err


def test_domains_and_servers_are_compared(cloud: Cloud) -> None:
    snapshot = audit.look(cloud.db, patience=0)
    there = [DomainInfo("a", "h1", RUNNING), DomainInfo("b", "h2", RUNNING)]
    assert audit.find_in_domains(snapshot, ["h1", "h2"], there) == []
    there = [
        DomainInfo("a", "h2", RUNNING),
        DomainInfo("stranger", "h1", RUNNING),
        DomainInfo("gone", "h1", RUNNING),
        DomainInfo("c", "h1", RUNNING),
    ]
    found = audit.find_in_domains(snapshot, ["h1", "h2"], there, {"gone": snapshot.at})
    assert sorted((finding.kind, finding.subject) for finding in found) == [
        ("domain-elsewhere", "a"),
        ("domain-of-deleted-server", "gone"),
        ("domain-without-server", "stranger"),
        ("server-without-domain", "a"),
        ("server-without-domain", "b"),
    ]
    # Nothing is said of hosts that did not answer.
    assert audit.find_in_domains(snapshot, [], []) == []
    # What has changed since the computes were asked, or a little before, may be why they differ.
    before = snapshot.at - datetime.timedelta(hours=1)
    late = audit.find_in_domains(snapshot, ["h1", "h2"], there, {"gone": snapshot.at}, before)
    assert [(finding.kind, finding.subject) for finding in late] == [("domain-without-server", "stranger")]
    patient = audit.look(cloud.db, patience=3600)
    late = audit.find_in_domains(patient, ["h1", "h2"], there, {"gone": snapshot.at})
    assert [(finding.kind, finding.subject) for finding in late] == [("domain-without-server", "stranger")]

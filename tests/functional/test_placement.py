# SPDX-License-Identifier: Apache-2.0
"""The real placer on a real database: each filter, weigher and policy, and what it says when there is no host."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from nova_lite import conf as nova_conf
from nova_lite.db import registry
from nova_lite.db.models import (
    aggregate_hosts,
    aggregates,
    allocations,
    compute_nodes,
    grants,
    instances,
    server_groups,
    services,
)
from nova_lite.db.session import Database
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.group import Group
from nova_lite.objects.node import NodeInventory
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.resources import Resources
from nova_lite.objects.selection import Selection
from nova_lite.scheduler.filters.aggregate_extra_specs import matches
from nova_lite.scheduler.placer import Placer
from tests.fixtures import empty_database

SIZE = Resources(4, 4096, 40)
FLAVOR = Flavor("1", "small", vcpus=1, memory_mb=512, root_gb=1)


class Books:
    """A database with hosts in it, and placers that work on it."""

    def __init__(self, directory: Path, **options: Any) -> None:
        self.conf = cfg.ConfigOpts()
        nova_conf.register(self.conf)
        self.conf([], project="nova-lite", default_config_files=[])
        self.conf.set_override("connection", f"sqlite:///{directory}/books.sqlite", "database")
        for name, value in options.items():
            self.conf.set_override(name, value, "scheduler")
        self.db = Database(self.conf)
        empty_database.create(self.db.engine)
        self.nodes: dict[str, int] = {}

    def add_host(self, host: str, size: Resources = SIZE, **more: Any) -> int:
        inventory = NodeInventory(str(uuid.uuid4()), host, host, size, **more)

        def unit(conn: sa.Connection) -> int:
            service_id = registry.register_service(conn, registry.COMPUTE, host, host)
            return registry.register_node(conn, service_id, inventory).node_id

        self.nodes[host] = self.db.write(unit)
        return self.nodes[host]

    def placer(self) -> Placer:
        return Placer(self.conf, self.db, seed=1)

    def insert(self, table: sa.Table, **values: Any) -> int:
        return int(self.db.write(lambda conn: conn.execute(sa.insert(table).values(**values)).inserted_primary_key[0]))

    def add_group(self, policy: str, most: int = 1) -> Group:
        group_uuid = str(uuid.uuid4())
        group_id = self.insert(
            server_groups,
            uuid=group_uuid,
            project_id="p",
            user_id="u",
            name="g",
            policy=policy,
            max_server_per_host=most,
        )
        return Group(group_id, group_uuid, policy, most)

    def aggregate(self, name: str, hosts: list[str], **metadata_: str) -> None:
        aggregate = self.insert(aggregates, uuid=str(uuid.uuid4()), name=name, metadata=json.dumps(metadata_))
        for host in hosts:
            self.insert(aggregate_hosts, aggregate_id=aggregate, host=host)

    def change(self, table: sa.Table, host: str, **values: Any) -> None:
        self.db.write(lambda conn: conn.execute(sa.update(table).where(table.c.host == host).values(**values)))


@pytest.fixture
def make_books(tmp_path: Path) -> Iterator[Callable[..., Books]]:
    made: list[Books] = []

    def make(hosts: int = 3, **options: Any) -> Books:
        books = Books(tmp_path, **options)
        made.append(books)
        for number in range(1, hosts + 1):
            books.add_host(f"host{number}")
        return books

    yield make
    for books in made:
        books.db.close()


def spec(**changes: Any) -> RequestSpec:
    base = RequestSpec(str(uuid.uuid4()), "p", Resources(1, 512, 1), FLAVOR)
    return replace(base, **changes)


def place(books: Books, *specs: RequestSpec) -> list[Selection]:
    return books.placer().place(specs)


def test_spread_prefers_the_emptiest_and_pack_the_fullest(make_books: Callable[..., Books]) -> None:
    for policy, expected in (("spread", {1}), ("pack", {3})):
        books = make_books(hosts=0, placement_policy=policy)
        for number in range(3):
            books.add_host(f"{policy}{number}")
        wanted = [spec(availability_zone=None, requested_host=None) for _ in range(3)]
        books.aggregate(policy, [f"{policy}{number}" for number in range(3)], availability_zone=policy)
        answers = place(books, *(replace(each, availability_zone=policy) for each in wanted))
        assert set(Counter(answer.host for answer in answers).values()) == expected, policy


def test_a_batch_fills_every_slot_and_no_more(make_books: Callable[..., Books]) -> None:
    books = make_books()
    answers = place(books, *(spec() for _ in range(14)))
    assert Counter(answer.host for answer in answers if answer.grant_id) == {"host1": 4, "host2": 4, "host3": 4}
    reasons = [answer.reason for answer in answers if not answer.grant_id]
    assert (
        reasons
        == ["No valid host was found. Of 3 hosts: 3 without room for 1 VCPU, 512 MiB of memory and 1 GiB of disk."] * 2
    )


def test_down_and_disabled_hosts_get_nothing(make_books: Callable[..., Books]) -> None:
    books = make_books()
    books.change(services, "host1", disabled=True)
    books.change(services, "host2", forced_down=True)
    assert place(books, spec())[0].host == "host3"
    long_ago = sa.text("'2020-01-01 00:00:00.000000'")
    books.change(services, "host3", last_seen_at=long_ago)
    reason = place(books, spec())[0].reason
    assert reason == "No valid host was found. Of 3 hosts: 3 down or disabled."


def test_no_server_is_larger_than_its_host(make_books: Callable[..., Books]) -> None:
    books = make_books(hosts=0)
    books.add_host("host1", Resources(4, 4096, 40), cpu_allocation_ratio=16.0)
    assert place(books, spec(resources=Resources(5, 1, 0)))[0].grant_id is None
    assert place(books, spec(resources=Resources(4, 1, 0)))[0].host == "host1"


def test_reserved_amounts_are_kept_free(make_books: Callable[..., Books]) -> None:
    books = make_books(hosts=0)
    books.add_host("host1", Resources(4, 4096, 40), reserved=Resources(0, 4000, 0))
    assert place(books, spec())[0].grant_id is None


def test_a_zone_is_an_aggregate_with_its_name(make_books: Callable[..., Books]) -> None:
    books = make_books()
    books.aggregate("east", ["host2"], availability_zone="east")
    assert {place(books, spec(availability_zone="east"))[0].host for _ in range(3)} == {"host2"}
    assert place(books, spec(availability_zone="nova"))[0].host in ("host1", "host3")
    assert "not in availability zone west" in (place(books, spec(availability_zone="west"))[0].reason or "")


def test_extra_specs_ask_for_the_metadata_of_aggregates(make_books: Callable[..., Books]) -> None:
    books = make_books()
    books.aggregate("fast", ["host3"], disk="ssd,nvme")
    fast = replace(FLAVOR, extra_specs={"aggregate_instance_extra_specs:disk": "ssd"})
    assert place(books, spec(flavor=fast))[0].host == "host3"
    none = replace(FLAVOR, extra_specs={"aggregate_instance_extra_specs:disk": "tape"})
    assert "the flavor asks for (disk=tape)" in (place(books, spec(flavor=none))[0].reason or "")


@pytest.mark.parametrize(
    ("value", "requirement", "answer"),
    [
        ("ssd", "ssd", True),
        ("4", ">= 3", True),
        ("2", ">= 3", False),
        ("5", "= 3", True),
        ("abc", "s== abc", True),
        ("abc", "s!= abc", False),
        ("abc", "<in> b", True),
        ("abc", "<or> x <or> abc", True),
        ("abc", "<or> x <or> y", False),
        ("abc", "<all-in> a c", True),
        ("abc", "== 3", False),
    ],
)
def test_requirements_in_extra_specs(value: str, requirement: str, answer: bool) -> None:
    assert matches(value, requirement) is answer


def test_images_run_where_their_architecture_does(make_books: Callable[..., Books]) -> None:
    books = make_books(hosts=0)
    books.add_host("arm", architectures=("aarch64",))
    books.add_host("pc", architectures=("x86_64",))
    assert place(books, spec(image_properties={"hw_architecture": "aarch64"}))[0].host == "arm"
    wanted = {"img_hv_type": "xen"}
    assert "what the image asks for (xen)" in (place(books, spec(image_properties=wanted))[0].reason or "")


def test_hints_name_servers_to_be_with_or_without(make_books: Callable[..., Books]) -> None:
    books = make_books()
    other = str(uuid.uuid4())
    books.insert(
        instances,
        uuid=other,
        project_id="p",
        user_id="u",
        name="other",
        hostname="other",
        image="null",
        flavorid="1",
        flavor="{}",
        vm_state="active",
        host="host2",
        scheduler_hints="{}",
        metadata="{}",
        networks="[]",
        addresses="{}",
        reservation_id="r-1",
    )
    assert place(books, spec(hints={"same_host": [other]}))[0].host == "host2"
    apart = {place(books, spec(hints={"different_host": [other]}))[0].host for _ in range(4)}
    assert apart <= {"host1", "host3"}
    nobody = {"same_host": [str(uuid.uuid4())]}
    assert "same_host" in (place(books, spec(hints=nobody))[0].reason or "")


def test_the_named_host_still_has_to_pass(make_books: Callable[..., Books]) -> None:
    books = make_books()
    assert place(books, spec(requested_host="host2"))[0].host == "host2"
    books.change(services, "host2", disabled=True)
    reason = place(books, spec(requested_host="host2"))[0].reason
    assert reason == "No valid host was found. Of 3 hosts: 2 not the requested host2; 1 down or disabled."


def test_hosts_that_failed_are_not_tried_again(make_books: Callable[..., Books]) -> None:
    books = make_books()
    assert place(books, spec(excluded_hosts=("host1", "host2")))[0].host == "host3"


def test_anti_affinity_within_a_batch(make_books: Callable[..., Books]) -> None:
    books = make_books()
    group = books.add_group("anti-affinity")
    answers = place(books, *(spec(group=group) for _ in range(4)))
    assert sorted(answer.host or "" for answer in answers) == ["", "host1", "host2", "host3"]
    two = books.add_group("anti-affinity", most=2)
    counts = Counter(answer.host for answer in place(books, *(spec(group=two) for _ in range(6))))
    assert set(counts.values()) == {2} and None not in counts


def test_affinity_goes_where_its_first_member_is(make_books: Callable[..., Books]) -> None:
    books = make_books()
    group = books.add_group("affinity")
    first = {answer.host for answer in place(books, *(spec(group=group) for _ in range(3)))}
    assert len(first) == 1
    assert {answer.host for answer in place(books, spec(group=group))} == first
    # Its home has four slots, and now they are taken.
    assert "not the home of the affinity group" in (place(books, spec(group=group))[0].reason or "")


def test_soft_policies_prefer_and_do_not_insist(make_books: Callable[..., Books]) -> None:
    books = make_books()
    apart = books.add_group("soft-anti-affinity")
    counts = Counter(answer.host for answer in place(books, *(spec(group=apart) for _ in range(6))))
    assert set(counts.values()) == {2}
    together = books.add_group("soft-affinity")
    counts = Counter(answer.host for answer in place(books, *(spec(group=together) for _ in range(3))))
    assert sorted(counts.values()) == [1, 2], "two fit beside the first group's, the third goes elsewhere"


def test_a_host_where_builds_failed_comes_last(make_books: Callable[..., Books]) -> None:
    books = make_books()
    books.change(compute_nodes, "host1", failed_builds=1)
    books.change(compute_nodes, "host2", failed_builds=2)
    assert place(books, spec())[0].host == "host3"


def test_placing_a_consumer_again_replaces_its_grant(make_books: Callable[..., Books]) -> None:
    """Launchpad 1795992: a call that is repeated while its first run goes on must not book twice."""
    books = make_books()
    again = spec()
    first, second = place(books, again)[0], place(books, again)[0]
    found = books.db.read(lambda conn: list(conn.execute(sa.select(grants.c.id)).scalars()))
    assert found == [second.grant_id] != [first.grant_id]


def test_a_view_that_is_wrong_about_room_does_not_say_no(make_books: Callable[..., Books]) -> None:
    books = make_books(hosts=1)
    placer = books.placer()
    full = [spec() for _ in range(4)]
    assert all(answer.grant_id for answer in placer.place(full))
    # They go away behind the view's back: nothing touches the node.
    books.db.write(lambda conn: conn.execute(sa.delete(grants)))
    assert placer.place([spec()])[0].host == "host1"
    assert books.db.read(lambda conn: conn.execute(sa.select(allocations)).all()) == []

# SPDX-License-Identifier: Apache-2.0
"""kill -9 in the middle of a boot: the server still ends ACTIVE or explained, and the books agree."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.fixtures.books import disagreements
from tests.fixtures.client import wait_until_empty
from tests.fixtures.cloud import Cloud, wait_for
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.rabbitmq import RabbitMQ


@pytest.fixture(scope="module")
def cloud(mariadb: MariaDB, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud with one of each program. Each test leaves it as it found it."""
    directory = tmp_path_factory.mktemp("cloud")
    settings = {
        "fake": {"control_file": str(directory / "faults.json")},
        # Longer than a compute takes to start again.
        "DEFAULT": {"service_down_time": "15"},
    }
    cloud = Cloud(directory, mariadb.url(mariadb.create_database()), rabbitmq.vhost_url(), settings)
    try:
        cloud.start_all(schedulers=1, conductors=1)
        yield cloud
    finally:
        cloud.stop()


@pytest.mark.parametrize(
    ("program", "moment"),
    [
        ("scheduler", "after-grant"),
        ("conductor", "after-claim"),
        ("conductor", "after-call"),
        ("conductor", "after-note"),
        ("conductor", "before-active"),
        ("compute", "before-claim"),
        ("compute", "after-claim"),
        ("compute", "after-spawn"),
    ],
)
def test_a_boot_survives_a_death(cloud: Cloud, program: str, moment: str) -> None:
    client = cloud.client()
    cloud.replace(program, moment)
    dying = cloud.running(program)[0]
    server = client.boot(f"survivor-of-{program}-{moment}", client.flavor())
    wait_for(lambda: dying.process.poll() is not None, 60, cloud.logs)
    cloud.start(program)
    settled = client.settle([server], patience=60)[0]
    assert settled["status"] == "ACTIVE", settled
    wait_until_empty(lambda: disagreements(cloud.database), 15)
    client.delete([server])
    assert not disagreements(cloud.database)


def test_a_boot_whose_compute_never_returns_is_explained(cloud: Cloud) -> None:
    client = cloud.client()
    cloud.replace("compute", "after-claim")
    server = client.boot("left", client.flavor())
    settled = client.settle([server], patience=60)[0]
    assert settled["status"] == "ERROR"
    assert "went down while it built the server" in settled["fault"]["message"]
    # It may have a domain there, so its place stays booked until it is deleted.
    assert not disagreements(cloud.database)
    client.delete([server])
    assert not disagreements(cloud.database)
    cloud.start("compute")
    cloud.wait_for_hosts("up")


def test_a_server_deleted_while_its_compute_is_down_goes_when_it_returns(cloud: Cloud) -> None:
    client = cloud.client()
    server = client.boot("orphan", client.flavor())
    client.settle([server])
    compute = cloud.running("compute")[0]
    compute.kill()
    cloud.wait_for_hosts("down")
    client.delete([server])
    assert not disagreements(cloud.database)
    domains = cloud.directory / "state" / "fake-domains"
    assert list(domains.rglob(f"{server}.json"))
    compute.start_again()
    wait_for(lambda: not list(domains.rglob(f"{server}.json")), 30, cloud.logs)
    cloud.wait_for_hosts("up")


def test_every_host_failing_ends_after_max_attempts(cloud: Cloud) -> None:
    """Launchpad 1326207: endless rescheduling, since the record of attempts got lost between services."""
    faults = cloud.directory / "faults.json"
    faults.write_text(json.dumps({"*": {"spawn": {"fail": "no space left on device"}}}))
    client = cloud.client()
    server = client.boot("hopeless", client.flavor())
    settled = client.settle([server])[0]
    faults.unlink()
    assert settled["status"] == "ERROR"
    assert settled["fault"]["message"].count("no space left on device") == 3
    assert not disagreements(cloud.database)
    client.delete([server])

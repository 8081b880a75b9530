# SPDX-License-Identifier: Apache-2.0
"""kill -9 in the middle of what is done to a server: whoever comes after ends it, and the books agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fixtures.books import disagreements
from tests.fixtures.client import Client, wait_until_empty
from tests.fixtures.cloud import Cloud, wait_for
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.rabbitmq import RabbitMQ

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cloud(mariadb: MariaDB, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud with one of each program. Each test leaves it as it found it."""
    # Longer than a program takes to start again, on a busy machine as well.
    settings = {"DEFAULT": {"service_down_time": "60"}, "conductor": {"compute_down_patience": "90"}}
    url = mariadb.url(mariadb.create_database())
    cloud = Cloud(tmp_path_factory.mktemp("cloud"), url, rabbitmq.vhost_url(), settings)
    try:
        cloud.start_all(schedulers=1, conductors=1)
        yield cloud
    finally:
        cloud.stop()


# action -> what is done before, the body, the status afterwards
ACTIONS: dict[str, tuple[str | None, Any, str]] = {
    "pause": (None, None, "PAUSED"),
    "resume": ("suspend", None, "ACTIVE"),
    "rebuild": (None, {}, "ACTIVE"),
    "createImage": (None, {"name": "survivor"}, "ACTIVE"),
    "rescue": (None, None, "RESCUE"),
    "shelve": (None, None, "SHELVED_OFFLOADED"),
    "unshelve": ("shelve", None, "ACTIVE"),
}
# Each moment once at least, where the most is at stake.
DEATHS = [
    ("resume", "conductor", "before-act"),
    ("pause", "compute", "before-action"),
    ("rebuild", "compute", "after-action"),
    ("rescue", "conductor", "before-end"),
    ("createImage", "compute", "within-image"),
    ("createImage", "conductor", "before-end"),
    ("shelve", "compute", "after-action"),
    ("shelve", "conductor", "before-end"),
    ("unshelve", "conductor", "before-active"),
    ("unshelve", "compute", "after-claim"),
]


@pytest.mark.parametrize(("action", "program", "moment"), DEATHS)
def test_an_action_survives_a_death(cloud: Cloud, action: str, program: str, moment: str) -> None:
    client = cloud.client()
    before, body, status = ACTIONS[action]
    server = client.boot(f"{action}-{moment}", client.flavor())
    client.settle([server])
    if before:
        client.act(server, **{before: None})
        client.settle([server])
    if action == "rebuild":
        body = {"imageRef": client.image("other")}
    cloud.replace(program, moment)
    dying = cloud.running(program)[0]

    answer = client.act(server, **{action: body})

    wait_for(lambda: dying.process.poll() is not None, 60, cloud.logs)
    cloud.start(program)
    settled = client.settle([server], patience=90)[0]
    assert settled["status"] == status, _history(client, server)
    wait_until_empty(lambda: disagreements(cloud.database), 15)
    if action == "createImage":
        image = client.session.get(f"{client.url}/image/v2/images/{answer['image_id']}", timeout=30).json()
        assert image["status"] == "active"
    client.delete([server])
    assert not disagreements(cloud.database)


def _history(client: Client, server: str) -> list[Any]:
    return [action["message"] for action in client.get(f"/servers/{server}/os-instance-actions")["instanceActions"]]

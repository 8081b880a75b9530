# SPDX-License-Identifier: Apache-2.0
"""Moves as the API accepts and lists them, on MariaDB and PostgreSQL: the races that SQLite's one writer hides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from nova_lite.db import models, registry
from nova_lite.db.models import migrations, services
from tests.fixtures.server_api import ServerAPI, add_flavor, write_users
from tests.integration.conftest import DatabaseServer

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("users")
    write_users(directory)
    return directory


@pytest.fixture
def api(users: Path, tmp_path: Path, database_server: DatabaseServer) -> Iterator[ServerAPI]:
    """An api with two hosts and a flavor of two cores."""
    url = database_server.url(database_server.create_database())
    made = ServerAPI(users, tmp_path, database__connection=url)

    def unit(conn: sa.Connection) -> None:
        add_flavor(conn, "big", "m1.big", 512, vcpus=2)
        registry.register_service(conn, registry.COMPUTE, "host2", "compute-2")

    made.db.write(unit)
    yield made
    made.close()


def _at_once(*works: Callable[[], int]) -> list[int]:
    """Do all of it at the same moment; return what each returned, in the order of the works."""
    start = threading.Barrier(len(works))
    answers = [0] * len(works)

    def run(place: int) -> None:
        start.wait()
        answers[place] = works[place]()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _server(api: ServerAPI) -> str:
    server_id = api.create()
    api.settle(server_id, node_id=1)
    return server_id


def _act(api: ServerAPI, server_id: str, action: dict[str, object]) -> int:
    return int(api.call("POST", f"/servers/{server_id}/action", action, "root").status_code)


def test_of_many_moves_at_once_one_is_accepted(api: ServerAPI) -> None:
    server_id = _server(api)
    resize: dict[str, object] = {"resize": {"flavorRef": "big"}}

    answers = _at_once(*[lambda: _act(api, server_id, resize)] * 6, *[lambda: _act(api, server_id, {"migrate": None})])

    assert sorted(answers) == [202] + [409] * 6
    assert api.count(migrations) == 1
    assert len(api.conductor.hints) == 2, "of the create, and of the move"
    cores = api.db.read(lambda conn: conn.scalar(sa.select(models.quota_usages.c.cores)))
    assert cores == (2 if 202 in answers[:6] else 1)


def test_of_confirming_and_reverting_at_once_one_is_accepted(api: ServerAPI) -> None:
    server_id = _server(api)
    _act(api, server_id, {"migrate": None})
    api.settle(server_id, "resized")
    api.db.write(lambda conn: conn.execute(sa.update(migrations).values(status="finished")))

    confirmed, reverted = _at_once(
        lambda: _act(api, server_id, {"confirmResize": None}), lambda: _act(api, server_id, {"revertResize": None})
    )

    assert sorted((confirmed // 100, reverted // 100)) == [2, 4]
    status = api.db.read(lambda conn: conn.scalar(sa.select(migrations.c.status)))
    assert status == ("confirming" if confirmed == 204 else "reverting")


@pytest.mark.parametrize("attempt", range(3))
def test_no_host_is_alive_again_while_its_servers_are_evacuated(api: ServerAPI, attempt: int) -> None:
    server_id = _server(api)
    here = services.c.host == "host1"
    api.db.write(lambda conn: conn.execute(sa.update(services).where(here).values(forced_down=True)))
    service = api.call("GET", "/os-services?host=host1", user="root").json["services"][0]["id"]
    up = {"forced_down": False}

    evacuated, put_up = _at_once(
        lambda: _act(api, server_id, {"evacuate": {}}),
        lambda: int(api.call("PUT", f"/os-services/{service}", up, "root").status_code),
    )

    assert (evacuated, put_up) in ((200, 409), (400, 200), (409, 200))
    assert api.count(migrations) == (1 if evacuated == 200 else 0)


def test_pages_of_moves_that_began_at_one_moment(api: ServerAPI) -> None:
    servers = [_server(api) for _ in range(5)]
    for server_id in servers:
        assert _act(api, server_id, {"migrate": None}) == 202
    api.db.write(lambda conn: conn.execute(sa.update(migrations).values(created_at=sa.func.now())))
    found: list[str] = []
    path = "/os-migrations?limit=2&host=host1&changes-since=2000-01-01T00:00:00Z"
    while path and len(found) < 10:
        answer = api.call("GET", path, user="root").json
        found += [move["instance_uuid"] for move in answer["migrations"]]
        links = answer.get("migrations_links", [])
        path = links[0]["href"].split("/v2.1", 1)[1] if links else ""

    assert found == servers[::-1]


def test_a_live_migration_is_shown_and_aborted(api: ServerAPI) -> None:
    server_id = _server(api)
    assert _act(api, server_id, {"os-migrateLive": {"host": "host2", "block_migration": "auto"}}) == 202
    api.db.write(lambda conn: conn.execute(sa.update(migrations).values(status="running", memory_total_bytes=1 << 40)))

    (shown,) = api.call("GET", f"/servers/{server_id}/migrations", user="root").json["migrations"]
    assert (shown["status"], shown["memory_total_bytes"]) == ("running", 1 << 40)

    path = f"/servers/{server_id}/migrations/{shown['id']}"
    assert api.call("DELETE", path, user="root").status_code == 202
    assert api.db.read(lambda conn: conn.scalar(sa.select(migrations.c.wish))) == "abort"


def test_a_dead_host_that_was_evacuated_is_deleted(api: ServerAPI) -> None:
    server_id = _server(api)
    here = services.c.host == "host1"
    api.db.write(lambda conn: conn.execute(sa.update(services).where(here).values(forced_down=True)))
    assert _act(api, server_id, {"evacuate": {}}) == 200
    service = api.call("GET", "/os-services?host=host1", user="root").json["services"][0]["id"]
    assert api.call("DELETE", f"/os-services/{service}", user="root").status_code == 409

    api.settle(server_id, host="host2")
    api.db.write(lambda conn: conn.execute(sa.update(migrations).values(status="done", dest_compute="host2")))

    assert api.call("DELETE", f"/os-services/{service}", user="root").status_code == 204
    ended = api.db.read(lambda conn: conn.execute(sa.select(migrations.c.status, migrations.c.open)).one())
    assert (ended.status, bool(ended.open)) == ("completed", False)

# SPDX-License-Identifier: Apache-2.0
"""Consoles: who has a token sees the screen of its server as it runs there now, once; and nobody sees another's.

That a token of a server which was stopped opens whatever guest has its port by now is an old fault of such proxies
(Launchpad 1409142 and the checks that followed it).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import sqlalchemy as sa

from nova_lite.db.models import console_tokens
from nova_lite.db.session import Database
from nova_lite.objects.diagnostics import Screen as Place
from tests.fixtures.client import ApiError, Client
from tests.fixtures.cloud import PASSWORD, wait_for
from tests.fixtures.inside import InsideCloud
from tests.fixtures.web_socket import EchoServer, Refused, Screen, socket_url
from tests.functional.network.conftest import boot

NOVNC = {"remote_console": {"protocol": "vnc", "type": "novnc"}}


@pytest.fixture
def echo(cloud: InsideCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[EchoServer]:
    """The screens of all servers: the fake hypervisor has none of its own."""
    made = EchoServer()
    shown = cloud.driver.screen
    monkeypatch.setattr(
        cloud.driver, "screen", lambda instance: shown(instance) and Place("127.0.0.1", made.port), raising=True
    )
    yield made
    made.close()


@pytest.fixture
def server(client: Client) -> str:
    made = boot(client)
    client.settle([made])
    return made


def url_of(client: Client, server: str) -> str:
    return str(client.call("POST", f"/servers/{server}/remote-consoles", NOVNC)["remote_console"]["url"])


def token_of(url: str) -> str:
    return url.rpartition("%3D")[2]


def is_refused(url: str) -> bool:
    try:
        Screen(socket_url(url)).close()
    except Refused as error:
        assert error.status == 403, error
        return True
    return False


def test_a_token_opens_its_screen_once(cloud: InsideCloud, client: Client, echo: EchoServer, server: str) -> None:
    url = url_of(client, server)
    assert url.startswith(f"{cloud.conf.novnc.base_url}?path=%3Ftoken%3D")
    serving = threading.Thread(target=echo.serve_one)
    serving.start()

    screen = Screen(socket_url(url))
    assert screen.read(6) == EchoServer.GREETING
    screen.write(b"to and fro")
    assert screen.read(10) == b"to and fro"
    screen.close()
    serving.join(10)

    assert is_refused(url)
    assert is_refused(url[:-1] + ("0" if url[-1] != "0" else "1"))
    assert is_refused(url.replace("token", "other"))


def test_a_token_expires(client: Client, echo: EchoServer, server: str, db: Database) -> None:
    url = url_of(client, server)
    db.write(lambda conn: conn.execute(sa.update(console_tokens).values(expires_at=console_tokens.c.created_at)))

    assert is_refused(url)
    url_of(client, server)  # takes the expired ones away
    assert db.read(lambda conn: conn.scalar(sa.select(sa.func.count()).select_from(console_tokens))) == 1


def test_only_a_hash_is_kept(client: Client, echo: EchoServer, server: str, db: Database) -> None:
    token = token_of(url_of(client, server))
    rows = db.read(lambda conn: conn.execute(sa.select(console_tokens)).all())
    assert len(token) == 64 and not any(token in map(str, row) for row in rows)


@pytest.mark.parametrize("change", ["stopped and started", "rebooted", "moved", "deleted"])
def test_a_token_ends_with_what_it_was_made_for(client: Client, echo: EchoServer, server: str, change: str) -> None:
    url = url_of(client, server)
    if change == "deleted":
        client.delete([server])
    else:
        for action in {
            "stopped and started": ({"os_stop": None}, {"os_start": None}),
            "rebooted": ({"reboot": {"type": "HARD"}},),
            "moved": ({"os_migrateLive": {"host": None, "block_migration": "auto"}},),
        }[change]:
            client.act(server, **action)  # type: ignore[arg-type]
            client.settle([server])
    assert is_refused(url)


def test_a_place_that_is_another_guests_by_now_is_not_shown(
    cloud: InsideCloud, client: Client, echo: EchoServer, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = url_of(client, server)
    monkeypatch.setattr(cloud.driver, "screen", lambda _instance: Place("127.0.0.1", echo.port + 1))
    assert is_refused(url)


def test_pages_of_others_open_nothing(cloud: InsideCloud, client: Client, echo: EchoServer, server: str) -> None:
    url = socket_url(url_of(client, server))
    with pytest.raises(Refused, match="origin may open no console"):
        Screen(url, "http://elsewhere.example")


def test_pages_of_novnc_are_served_and_nothing_beside_them(cloud: InsideCloud) -> None:
    at = cloud.conf.novnc.base_url.rpartition("/")[0]
    assert requests.get(f"{at}/vnc_lite.html", timeout=10).text == "the page"
    assert requests.get(f"{at}/", timeout=10).status_code == 404
    assert requests.get(f"{at}/../nova-lite.conf", timeout=10).status_code == 404
    assert requests.get(f"{at}/%2e%2e/nova-lite.conf", timeout=10).status_code == 404


def test_what_a_token_stands_for_is_shown_to_administrators(
    cloud: InsideCloud, client: Client, echo: EchoServer, server: str
) -> None:
    token = token_of(url_of(client, server))
    path = f"/os-console-auth-tokens/{token}"
    shown = client.call("GET", path, headers={"OpenStack-API-Version": "compute 2.31"})["console"]
    assert shown == {"instance_uuid": server, "host": "127.0.0.1", "port": echo.port, "internal_access_path": None}
    for version, asked, status in (("2.30", path, 401), ("2.31", path + "0", 404)):
        with pytest.raises(ApiError) as error:
            client.call("GET", asked, headers={"OpenStack-API-Version": f"compute {version}"})
        assert error.value.status == status


def test_the_old_action_goes_to_2_5(cloud: InsideCloud, client: Client, echo: EchoServer, server: str) -> None:
    def ask(version: str, name: str, console_type: str) -> Any:
        # The header of old, which versions before 2.27 know.
        old = Client(cloud.url, "admin", PASSWORD, version)
        return old.call("POST", f"/servers/{server}/action", {name: {"type": console_type}})

    console = ask("2.5", "os-getVNCConsole", "novnc")["console"]
    assert (console["type"], len(token_of(console["url"]))) == ("novnc", 64)
    for version, name, console_type, status in (
        ("2.6", "os-getVNCConsole", "novnc", 404),
        ("2.5", "os-getVNCConsole", "spice-html5", 400),
        ("2.5", "os-getSPICEConsole", "spice-html5", 400),
        ("2.5", "os-getSerialConsole", "serial", 400),
    ):
        with pytest.raises(ApiError) as error:
            ask(version, name, console_type)
        assert error.value.status == status


@pytest.mark.parametrize(
    ("version", "protocol", "console_type", "status"),
    [
        ("2.5", "vnc", "novnc", 404),
        ("2.6", "serial", "serial", 400),
        ("2.6", "spice", "spice-html5", 400),
        ("2.7", "mks", "webmks", 400),
        ("2.8", "mks", "webmks", 400),
        ("2.8", "vnc", "nothing", 400),
    ],
)
def test_other_consoles_are_refused(
    client: Client, server: str, version: str, protocol: str, console_type: str, status: int
) -> None:
    body = {"remote_console": {"protocol": protocol, "type": console_type}}
    header = {"X-OpenStack-Nova-API-Version": version, "OpenStack-API-Version": f"compute {version}"}
    with pytest.raises(ApiError) as error:
        client.call("POST", f"/servers/{server}/remote-consoles", body, headers=header)
    assert error.value.status == status


def test_a_server_without_power_has_no_screen(client: Client, server: str) -> None:
    client.act(server, os_stop=None)
    wait_for(lambda: client.server(server)["status"] == "SHUTOFF", 30)
    with pytest.raises(ApiError, match="is not ready") as error:
        url_of(client, server)
    assert error.value.status == 409

# SPDX-License-Identifier: Apache-2.0
"""nova-lite-events beside a real RabbitMQ, fed by the notifier that the services use."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import oslo_messaging
import pytest
from oslo_config import cfg

from nova_lite import events
from tests.fixtures.cloud import Cloud
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.rabbitmq import RabbitMQ

PATIENCE = 30.0


class Following:
    """A running nova-lite-events and the lines that it prints."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nova_lite.cmd.events", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._printed = self._lines_of(self.process.stdout)
        self._said = self._lines_of(self.process.stderr)

    def printed(self) -> str:
        """Wait for the next event's line."""
        return self._printed.get(timeout=PATIENCE)

    def until_it_says(self, text: str) -> None:
        """Wait until a line about the connection has the text."""
        while text not in self._said.get(timeout=PATIENCE):
            pass

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)

    @staticmethod
    def _lines_of(stream: IO[str] | None) -> queue.Queue[str]:
        assert stream is not None
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            for line in stream:
                lines.put(line.rstrip("\n"))

        threading.Thread(target=read, daemon=True).start()
        return lines


@pytest.fixture
def config_file(tmp_path: Path, rabbitmq: RabbitMQ) -> Path:
    path = tmp_path / "nova-lite.conf"
    path.write_text(f"[DEFAULT]\nhost = here\ntransport_url = {rabbitmq.url}\n")
    return path


@pytest.fixture
def follow(config_file: Path) -> Iterator[Callable[..., Following]]:
    started: list[Following] = []

    def start(*arguments: str) -> Following:
        started.append(Following("--config-file", str(config_file), *arguments))
        return started[-1]

    yield start
    for following in started:
        following.process.kill()
        following.process.wait()


@pytest.fixture
def notifier(rabbitmq: RabbitMQ) -> Iterator[Any]:
    options = cfg.ConfigOpts()
    options([], default_config_files=[])
    oslo_messaging.set_transport_defaults(events.EXCHANGE)
    transport = oslo_messaging.get_notification_transport(options, url=rabbitmq.url)
    notifier = oslo_messaging.Notifier(
        transport, driver="messagingv2", publisher_id="here", topics=["notifications"], retry=3
    )
    # The services have been there before whoever follows them.
    notifier.info({}, "service.start", {})
    yield notifier
    transport.cleanup()


def test_events_are_lines(follow: Callable[..., Following], notifier: Any) -> None:
    following = follow()
    following.until_it_says("Following 127.0.0.1:")
    payload = {"uuid": "0b1c", "name": "web", "project_id": "p", "state": "active", "host": "host1"}

    notifier.info({}, "instance.create.end", payload)
    notifier.error({}, "instance.create.error", {**payload, "state": "error", "fault": "no space"})

    assert following.printed().split()[2:] == ["instance.create.end", "web", "0b1c", "active", "on", "host1"]
    assert following.printed().endswith("error  on host1  - no space")


def test_events_as_json(follow: Callable[..., Following], notifier: Any) -> None:
    following = follow("--json")
    following.until_it_says("Following")
    notifier.info({"request_id": "req-1"}, "instance.delete.end", {"uuid": "0b1c"})

    event = json.loads(following.printed())
    assert (event["event_type"], event["payload"]) == ("instance.delete.end", {"uuid": "0b1c"})


def test_two_followers_each_see_everything(follow: Callable[..., Following], notifier: Any) -> None:
    both = [follow(), follow()]
    for following in both:
        following.until_it_says("Following")
    notifier.info({}, "instance.reboot.end", {})

    assert [following.printed().split()[-1] for following in both] == ["instance.reboot.end"] * 2


def test_a_broker_that_restarts_is_waited_for(
    follow: Callable[..., Following], notifier: Any, rabbitmq: RabbitMQ
) -> None:
    following = follow()
    following.until_it_says("Following")

    rabbitmq.stop()
    following.until_it_says("away")
    rabbitmq.start()
    # The exchange is gone with the broker, until a service speaks again.
    notifier.info({}, "service.start", {})
    following.until_it_says("Following")
    notifier.info({}, "instance.stop.end", {})

    assert "instance.stop.end" in following.printed()


def test_an_interrupt_ends_it_cleanly(follow: Callable[..., Following], notifier: Any) -> None:
    following = follow()
    following.until_it_says("Following")
    assert following.interrupt() == 0


def test_a_wrong_password_is_one_line(follow: Callable[..., Following], config_file: Path, rabbitmq: RabbitMQ) -> None:
    config_file.write_text(config_file.read_text().replace(rabbitmq.password, "wrong"))
    following = follow()
    following.until_it_says("nova-lite-events: error: The message bus cannot be reached: ")
    assert following.process.wait(PATIENCE) == 1


def test_the_bus_in_memory_cannot_be_followed(follow: Callable[..., Following], config_file: Path) -> None:
    config_file.write_text("[DEFAULT]\ntransport_url = fake://\n")
    following = follow()
    following.until_it_says("cannot be followed from another one")
    assert following.process.wait(PATIENCE) == 1


def test_the_life_of_a_server_is_told(
    follow: Callable[..., Following],
    mariadb: MariaDB,
    rabbitmq: RabbitMQ,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The whole way: a server of a real cloud, from its boot to its end, and one that does not fit."""
    settings = {"oslo_messaging_notifications": {"driver": "messagingv2"}, "api": {"workers": "2"}}
    database = mariadb.url(mariadb.create_database())
    cloud = Cloud(tmp_path_factory.mktemp("cloud"), database, rabbitmq.vhost_url(), settings)
    try:
        cloud.start_all(schedulers=1, conductors=1)
        following = follow("--config-file", str(cloud.config), "--json")
        following.until_it_says("Following")
        client = cloud.client()
        server = client.boot("told", client.flavor())
        client.settle([server])
        for action in ("os_stop", "os_start"):
            client.act(server, **{action: None})
            client.settle([server])
        client.delete([server])
        client.settle([client.boot("huge", client.flavor("huge", vcpus=99))])
        told = [json.loads(following.printed()) for _number in range(10)]
    finally:
        cloud.stop()
    steps = [(event["event_type"], event["payload"]["name"]) for event in told]
    assert steps == [
        ("instance.create.start", "told"),
        ("instance.create.end", "told"),
        ("instance.power_off.start", "told"),
        ("instance.power_off.end", "told"),
        ("instance.power_on.start", "told"),
        ("instance.power_on.end", "told"),
        ("instance.delete.start", "told"),
        ("instance.delete.end", "told"),
        ("instance.create.start", "huge"),
        ("instance.create.error", "huge"),
    ]
    assert "without room for 99 VCPU" in told[-1]["payload"]["fault"]

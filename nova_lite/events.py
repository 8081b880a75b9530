# SPDX-License-Identifier: Apache-2.0
"""Following the notifications that services put on the bus: what happens in the cloud, as it happens.

A follower is a guest of the broker: its queue is its own and vanishes with it, it takes nothing away from other
consumers, and it waits for as long as the broker is away. It speaks to RabbitMQ through kombu, since oslo.messaging's
listeners share their queues. What it misses while it is not connected it does not see.
"""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import amqp.exceptions  # type: ignore[import-untyped]  # what kombu raises is amqp's
import kombu.connection
import kombu.entity
import kombu.messaging

from nova_lite import exception

#: The exchange and topics of rpc.notify.
EXCHANGE = "nova_lite"
TOPICS = ("notifications.info", "notifications.error")

# Seconds: between two attempts; that one may take; that a wait for events lasts before other things are looked at;
# after which a silent broker counts as lost.
_RETRY_INTERVAL = 1.0
_CONNECT_TIMEOUT = 5
_POLL = 0.5
_HEARTBEAT = 30


@dataclass(frozen=True, slots=True)
class Event:
    """One notification. priority is info or error; raw is everything that came."""

    timestamp: str
    event_type: str
    priority: str
    payload: dict[str, Any]
    raw: dict[str, Any] = field(repr=False)

    def line(self) -> str:
        """Describe the event in one line: when, what, which server, its state, where, and what went wrong."""
        payload = self.payload
        state = "/".join(str(payload[key]) for key in ("state", "task_state") if payload.get(key))
        server = " ".join(str(payload[key]) for key in ("name", "uuid") if payload.get(key))
        words = [self.timestamp[:19], f"{self.event_type:<28}", server, state]
        if payload.get("host"):
            words.append(f"on {payload['host']}")
        if payload.get("fault"):
            words.append(f"- {payload['fault']}")
        # Names are the users' own: none may move the operator's cursor or forge a line.
        return "".join(c if c.isprintable() else "?" for c in "  ".join(word for word in words if word))


def unwrap(body: Any) -> Event:
    """Take a notification out of oslo.messaging's envelope, if it is in one.

    :raises ValueError: it is no notification.
    """
    if isinstance(body, dict) and "oslo.message" in body:
        body = json.loads(body["oslo.message"])
    if not isinstance(body, dict) or "event_type" not in body:
        raise ValueError("not a notification")
    payload = body.get("payload")
    return Event(
        timestamp=str(body.get("timestamp", "")),
        event_type=str(body["event_type"]),
        priority=str(body.get("priority", "")).lower(),
        payload=payload if isinstance(payload, dict) else {},
        raw=body,
    )


def broker_urls(transport_url: str) -> list[str]:
    """Turn oslo.messaging's URL, which may name several hosts, into one that kombu understands for each host.

    :raises BusUnavailable: it is no broker that another process could follow.
    """
    url = urllib.parse.urlsplit(transport_url)
    if url.scheme in ("", "fake", "kombu+memory"):
        raise exception.BusUnavailable(
            "This cloud's bus is in memory, inside of one process, and cannot be followed from another one. Set "
            "transport_url to RabbitMQ (rabbit://user:password@host/), or read the process' log."
        )
    if url.scheme not in ("rabbit", "amqp", "kombu+amqp"):
        raise exception.BusUnavailable(f"Only RabbitMQ can be followed, not a bus of the kind {url.scheme}://")
    return [f"amqp://{host}{url.path or '/'}" for host in url.netloc.split(",")]


class Follower:
    """One look at the bus, until it is told to end.

    :param say: is told, in one line, about connections that come and go.
    :param ssl: what kombu is to know about TLS: False, True, or a dict of ssl options.
    """

    def __init__(self, transport_url: str, say: Callable[[str], None], ssl: Any = False) -> None:
        self._urls = broker_urls(transport_url)
        self._say = say
        self._said = ""
        self._ssl = ssl

    def follow(self, handle: Callable[[Event], None], stopping: threading.Event) -> None:
        """Hand every event over as it comes; a broker that goes away is waited for.

        :raises BusUnavailable: the broker refuses us, which waiting does not mend.
        """
        while not stopping.is_set():
            connection: Any = kombu.connection.Connection(
                ";".join(self._urls), heartbeat=_HEARTBEAT, connect_timeout=_CONNECT_TIMEOUT, ssl=self._ssl
            )
            try:
                with connection:
                    self._follow_connection(connection, handle, stopping)
                return
            except (amqp.exceptions.AccessRefused, amqp.exceptions.NotAllowed) as refused:
                raise exception.BusUnavailable(reason=_in_short(refused))
            except amqp.exceptions.NotFound:
                self._tell("No service has been on this bus yet; waiting for the first")
            except connection.recoverable_connection_errors as lost:
                self._tell(f"The broker is away ({_in_short(lost)}); waiting for it")
            stopping.wait(_RETRY_INTERVAL)

    def _follow_connection(self, connection: Any, handle: Callable[[Event], None], stopping: threading.Event) -> None:
        connection.connect()
        with connection.channel() as channel, self._consumer(channel, handle):
            self._tell(f"Following {connection.hostname}:{connection.port}")
            while not stopping.is_set():
                try:
                    connection.drain_events(timeout=_POLL)
                except TimeoutError:
                    connection.heartbeat_check()

    def _consumer(self, channel: Any, handle: Callable[[Event], None]) -> Any:
        # The services declare the exchange, each with its own idea of durability: here it is only looked up.
        exchange: Any = kombu.entity.Exchange(EXCHANGE, type="topic", passive=True)
        bindings = [kombu.entity.binding(exchange, routing_key=topic) for topic in TOPICS]
        queue: Any = kombu.entity.Queue("", bindings=bindings, exclusive=True, auto_delete=True, durable=False)

        def take(body: Any, _message: Any) -> None:
            try:
                handle(unwrap(body))
            except ValueError as error:
                self._tell(f"A message was left out: {error}")

        # Without acknowledgements: an event that was not shown is not worth showing late.
        return kombu.messaging.Consumer(channel, queues=[queue], callbacks=[take], accept=["json"], no_ack=True)

    def _tell(self, line: str) -> None:
        """Say it, unless it is what was said last."""
        if line != self._said:
            self._said = line
            self._say(line)


def _in_short(error: Exception) -> str:
    return (str(error) or type(error).__name__).split("\n", 1)[0]

# SPDX-License-Identifier: Apache-2.0
"""Notifications as lines, and URLs that can or cannot be followed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nova_lite import events, exception

MESSAGE: dict[str, Any] = {
    "timestamp": "2030-01-02 03:04:05.678901",
    "event_type": "instance.create.error",
    "priority": "ERROR",
    "payload": {"uuid": "0b1c", "name": "web", "state": "error", "host": "host1", "fault": "no space"},
}


@pytest.mark.parametrize("body", [MESSAGE, {"oslo.version": "2.0", "oslo.message": json.dumps(MESSAGE)}])
def test_an_event_is_the_same_in_an_envelope_and_without(body: dict[str, Any]) -> None:
    event = events.unwrap(body)
    assert event.line() == "2030-01-02 03:04:05  instance.create.error         web 0b1c  error  on host1  - no space"
    assert (event.priority, event.raw) == ("error", MESSAGE)


@pytest.mark.parametrize("payload", [{}, None, "text", {"name": None}])
def test_every_key_of_the_payload_may_be_missing(payload: object) -> None:
    event = events.unwrap({"event_type": "instance.delete.end", "payload": payload})
    assert event.line().strip() == "instance.delete.end"


def test_a_name_cannot_forge_a_line_or_move_the_cursor() -> None:
    event = events.unwrap({"event_type": "x", "payload": {"name": "a\n2030 \x1b[2J\u202eb"}})
    assert event.line().endswith("a?2030 ?[2J?b")


@pytest.mark.parametrize("body", ["text", None, [], {}, {"oslo.message": "{"}, {"oslo.message": "[]"}])
def test_what_is_no_notification_is_refused(body: object) -> None:
    with pytest.raises(ValueError):
        events.unwrap(body)


@pytest.mark.parametrize(
    ("url", "brokers"),
    [
        ("rabbit://u:p@one:5672/", ["amqp://u:p@one:5672/"]),
        ("rabbit://u:p@one", ["amqp://u:p@one/"]),
        ("rabbit://u:p@one:1,u:p@two:2/cloud", ["amqp://u:p@one:1/cloud", "amqp://u:p@two:2/cloud"]),
        ("rabbit://u:p@[::1]:5672/%2F", ["amqp://u:p@[::1]:5672/%2F"]),
    ],
)
def test_urls_of_brokers(url: str, brokers: list[str]) -> None:
    assert events.broker_urls(url) == brokers


@pytest.mark.parametrize(("url", "why"), [("fake://", "in memory"), ("", "in memory"), ("kafka://x", "kafka://")])
def test_what_cannot_be_followed_says_why(url: str, why: str) -> None:
    with pytest.raises(exception.BusUnavailable, match=why):
        events.broker_urls(url)

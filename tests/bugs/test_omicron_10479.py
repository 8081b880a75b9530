# SPDX-License-Identifier: Apache-2.0
"""oxidecomputer/omicron#10479: two starts of one instance both reserve, and overwrite each other.

Nothing said that an instance has one start at a time. Here the first to lock the server's row sets its task, and the
other is told that the server is busy.
"""

from __future__ import annotations

from collections import Counter

from tests.fixtures import faults
from tests.fixtures.books import disagreements
from tests.fixtures.client import ApiError, Client, at_once
from tests.fixtures.cloud import Cloud


def test_two_starts_at_once(three_hosts: Cloud, client: Client) -> None:
    server = client.boot("contended", client.flavor())
    client.settle([server])
    client.act(server, os_stop=None)
    assert client.settle([server])[0]["status"] == "SHUTOFF"
    statuses: Counter[int] = Counter()

    def start(_number: int) -> None:
        try:
            client.act(server, os_start=None)
            statuses[202] += 1
        except ApiError as error:
            statuses[error.status] += 1

    with faults.injected(three_hosts.directory, {"*": {"power_on": {"delay": 0.5}}}):
        at_once(2, start)
        assert client.settle([server])[0]["status"] == "ACTIVE"
    assert statuses == {202: 1, 409: 1}
    actions = client.get(f"/servers/{server}/os-instance-actions")["instanceActions"]
    assert sorted(action["action"] for action in actions) == ["create", "start", "stop"]
    assert not disagreements(three_hosts.database)

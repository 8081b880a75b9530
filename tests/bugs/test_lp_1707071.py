# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1707071: both computes of a live migration trim each other's half of the allocation.

Each of them "healed" in its periodic task what it took for wrong in a record that both owned. Here a compute reports
what it has and touches no books; the server holds both places until the move has ended, whoever looks how often.
"""

from __future__ import annotations

from collections import Counter

from tests.fixtures.auditing import audited
from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack

# At ten a second; both hosts report their domains and their inventory as often (see MOVING).
LOOKS = 30


def test_both_halves_are_there_until_the_move_has_ended(rack: Rack, racked: Movers) -> None:
    server = racked.boot(host="host1")
    during: Counter[tuple[tuple[str, int], ...]] = Counter()
    with audited(rack) as looks, racked.faults(server={"live_migrate": {"seconds": 250}}):
        racked.live_migrate(server, "host2")
        running = racked.running(server)
        while len(looks) < LOOKS:
            during[tuple(sorted(racked.in_use().items()))] += 1
        assert racked.migrations(server) == [("live-migration", "running")]
        path = f"/servers/{server}/migrations/{running['id']}/action"
        racked.client.call("POST", path, {"force_complete": None})
        assert racked.settled(server) == ("ACTIVE", "host2")
        racked.only_on(server, "host2")
    assert during.keys() == {(("host1", 1), ("host2", 1))}
    assert set(looks) == {""}
    assert racked.migrations(server) == [("live-migration", "completed")]
    assert racked.in_use() == {"host2": 1}

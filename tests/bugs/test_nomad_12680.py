# SPDX-License-Identifier: Apache-2.0
"""hashicorp/nomad#12680: a host that reconnects gets a further copy of what was replaced meanwhile.

Its reports, its old orders and the schedulers' decisions came in an order that nobody had thought of. Here an old order
is asked about before it is carried out, and a report of what is there decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

from tests.fixtures.movers import Movers
from tests.fixtures.rack import Rack

RUNNING = 1


@contextmanager
def watched(racked: Movers, server: str, host: str) -> Iterator[set[int]]:
    """Collect the power states that the server's domain on the host is seen in."""
    seen: set[int] = set()
    stopping = Event()

    def watch() -> None:
        while not stopping.wait(0.001):
            try:
                seen.add(json.loads((racked.domains_path / host / f"{server}.json").read_text())["power_state"])
            except FileNotFoundError:
                continue

    thread = Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        stopping.set()
        thread.join()


def test_a_host_returns_after_its_server_was_replaced(rack: Rack, racked: Movers) -> None:
    server = racked.boot(host="host1")
    racked.act(server, "os-stop")
    assert racked.settled(server) == ("SHUTOFF", "host1")
    with ExitStack() as watching:
        with rack.cut_off("host1"):
            # The order to start is on its way to host1, which does not read it before it returns.
            racked.act(server, "os-start")
            racked.wait_for_service("host1", "down")
            racked.force_down("host1")
            racked.evacuate(server, "host2")
            assert racked.settled(server)[1] == "host2"
            racked.act(server, "os-start")
            assert racked.settled(server) == ("ACTIVE", "host2")
            seen = watching.enter_context(watched(racked, server, "host1"))
        racked.only_on(server, "host2")
    assert RUNNING not in seen, "a second copy ran"
    assert racked.settled(server) == ("ACTIVE", "host2")
    racked.agree()

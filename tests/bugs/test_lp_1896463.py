# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1896463: a server that was evacuated loses what it has been given, for good.

A host's periodic task read its servers before the evacuation, and the migrations after it, and took the one that was
missing from the first list for gone. Here a report that was made before something happened takes no half back: the host
looks again, at this one server, before it says that it has nothing of it.
"""

from __future__ import annotations

import threading

import pytest

from nova_lite.objects.instance import DomainInfo
from tests.fixtures.inside import InsideCloud
from tests.fixtures.movers import Movers


def test_a_list_of_domains_that_is_older_than_an_evacuation(
    inside: InsideCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    movers = Movers(inside)
    listed, go_on, cleaning, go_on_cleaning = (threading.Event() for _ in range(4))
    domains, report = inside.driver.domains, inside.compute._report_domains

    def slow_domains() -> list[DomainInfo]:
        found = domains()
        listed.set()
        assert go_on.wait(60)
        return found

    monkeypatch.setattr(inside.driver, "domains", slow_domains)
    reporting = threading.Thread(target=report)
    reporting.start()
    assert listed.wait(20)
    # Nobody removes anything: all other reports wait as well.
    server = movers.boot(host="host1")
    movers.force_down("host1")
    movers.evacuate(server, "host2")
    assert movers.settled(server) == ("ACTIVE", "host2")
    assert movers.in_use() == {"host1": 1, "host2": 1}

    clean = inside.driver.clean

    def slow_clean(*args: object) -> None:
        cleaning.set()
        assert go_on_cleaning.wait(60)
        clean(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(inside.driver, "clean", slow_clean)
    monkeypatch.setattr(inside.driver, "domains", domains)
    go_on.set()
    assert cleaning.wait(20)
    # The old list lacked the domain, which is there: host1 still holds its half.
    there, held = movers.files(server), movers.in_use()
    go_on_cleaning.set()
    assert "host1/json" in there
    assert held == {"host1": 1, "host2": 1}
    movers.only_on(server, "host2")
    movers.wait_until_in_use({"host2": 1})
    reporting.join()
    movers.force_down("host1", False)
    movers.clear()

# SPDX-License-Identifier: Apache-2.0
"""Lists of ten thousand: a page costs one statement a table, whatever is on it and however far down the list it is."""

from __future__ import annotations

import re
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova_lite import policy
from tests.fixtures.many_servers import HOSTS, SERVERS, fill, server_uuid
from tests.fixtures.statements import statements
from tests.fixtures.whole_api import WholeAPI


@pytest.fixture(scope="module")
def full(people: Path, bus: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeAPI]:
    made = WholeAPI(people, tmp_path_factory.mktemp("full"), api__max_limit=1000)
    fill(made.db, made.project["blue"])
    # What is done once a process is no part of a list's cost.
    made.good("GET", "/v2.1/servers/detail?limit=1", user="alice")
    made.good("GET", "/v2.1/servers/detail?limit=1&all_tenants=1")
    yield made
    made.close()
    policy.reset()


def _tables(found: list[str]) -> Counter[str]:
    """Return by how many statements each table is read; those of a join count for the first."""
    return Counter(re.findall(r"FROM (\w+)", " ".join(statement.split("WHERE")[0] for statement in found)))


def _page(api: WholeAPI, path: str, version: str, user: str) -> tuple[Any, Counter[str]]:
    with statements() as found:
        answer = api.good("GET", f"/v2.1/{path}", version=version, user=user)
    assert not [statement for statement in found if not statement.lstrip().startswith("SELECT")]
    return answer, _tables(found)


@pytest.mark.parametrize("version", ["2.1", "2.96"])
@pytest.mark.parametrize("path", ["servers", "servers/detail"])
def test_a_page_of_servers_costs_a_statement_a_table(full: WholeAPI, path: str, version: str) -> None:
    large, cost = _page(full, f"{path}?limit=1000", version, "alice")
    small, same = _page(full, f"{path}?limit=2", version, "alice")

    assert (len(large["servers"]), len(small["servers"])) == (1000, 2)
    assert cost == same
    assert set(cost.values()) == {1}, cost
    assert cost["instances"] == 1


@pytest.mark.parametrize("version", ["2.1", "2.96"])
def test_an_administrators_page_costs_a_statement_a_table(full: WholeAPI, version: str) -> None:
    """Administrators are shown more: the hosts' zones and, from 2.16 on, their status."""
    shown, cost = _page(full, "servers/detail?limit=1000&all_tenants=1", version, "root")

    assert len(shown["servers"]) == 1000
    assert len({server["OS-EXT-SRV-ATTR:host"] for server in shown["servers"]}) == HOSTS
    assert set(cost.values()) == {1}, cost


def test_pages_lead_to_the_end_past_every_server_once(full: WholeAPI) -> None:
    seen: list[str] = []
    path = "servers?limit=1000"
    costs = []
    while path:
        answer, cost = _page(full, path, "2.96", "alice")
        costs.append(cost)
        seen += [server["id"] for server in answer["servers"]]
        links = answer.get("servers_links")
        path = f"servers?{urllib.parse.urlsplit(links[0]['href']).query}" if links else ""

    assert len(seen) == len(set(seen)) == SERVERS
    # After the first, the row that the marker names is read before the page.
    assert [cost["instances"] for cost in costs] == [1] + [2] * (len(costs) - 1)


@pytest.mark.parametrize(
    ("query", "number", "more"),
    [
        ("name=server-00012", 10, 0),
        ("status=ACTIVE", 1000, 0),
        ("status=ERROR", 1000, 0),
        ("flavor=1", 1000, 0),
        ("tags=blue", 1000, 0),
        ("not-tags=blue", 1000, 0),
        ("ip=10.0.3.", 256, 0),
        ("changes-since=2001-01-01T00:00:00Z", 1000, 0),
        ("availability_zone=zone-1&all_tenants=1", 1000, 1),
        ("sort_key=display_name&sort_dir=asc", 1000, 0),
    ],
)
def test_filters_and_orders_cost_no_more(full: WholeAPI, query: str, number: int, more: int) -> None:
    """A zone is looked up among the aggregates twice: to find its hosts, and to show those of the page."""
    shown, cost = _page(full, f"servers/detail?limit=1000&{query}", "2.96", "root" if more else "alice")

    assert len(shown["servers"]) == number
    assert max(cost.values()) == 1 + more, cost
    assert cost["instances"] == 1


@pytest.mark.parametrize(
    ("path", "key", "number"),
    [
        ("flavors?limit=1000", "flavors", 1000),
        ("flavors/detail?limit=1000", "flavors", 1000),
        ("os-migrations?limit=1000", "migrations", 1000),
        ("os-hypervisors?limit=1000&with_servers=true", "hypervisors", HOSTS),
        ("os-hypervisors/detail?limit=1000&with_servers=true", "hypervisors", HOSTS),
        ("os-services", "services", HOSTS),
        ("os-aggregates", "aggregates", 3),
        ("os-server-groups?limit=1000&all_projects=1", "server_groups", 1000),
        ("os-simple-tenant-usage?limit=1000&start=2001-01-01&detailed=1", "tenant_usages", 1),
        (f"servers/{server_uuid(0)}/os-instance-actions?limit=1000", "instanceActions", 1000),
    ],
)
def test_other_lists_cost_a_statement_a_table(full: WholeAPI, path: str, key: str, number: int) -> None:
    answer, cost = _page(full, path, "2.96", "root")

    assert len(answer[key]) == number
    # Of one server the server itself is looked up before; aggregates are read with their hosts and with their metadata.
    assert max(cost.values()) == 1, cost

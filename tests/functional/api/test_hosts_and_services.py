# SPDX-License-Identifier: Apache-2.0
"""What operators see and do of compute hosts: services, hypervisors, aggregates, zones."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from nova_lite.db import models, registry
from tests.fixtures.whole_api import WholeAPI

ONE = "aaaaaaaa-0000-4000-8000-000000000001"
LONG_AGO = datetime.datetime(2020, 1, 1)


def _services(api: WholeAPI, query: str = "", version: str = "2.96") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.good("GET", f"/v2.1/os-services?{query}", version=version)["services"]
    return found


def _node(api: WholeAPI, host: str = "h1") -> Any:
    mine = sa.select(models.compute_nodes).where(models.compute_nodes.c.host == host)
    return api.db.read(lambda conn: conn.execute(mine).one())


def test_services_are_up_while_they_are_heard(api: WholeAPI) -> None:
    api.add_host("h1")
    api.db.write(lambda conn: registry.register_service(conn, "nova-conductor", "c1", "c1"))

    compute, conductor = _services(api)
    assert (compute["state"], compute["status"], compute["zone"]) == ("up", "enabled", "nova")
    assert conductor["zone"] == "internal"
    assert _services(api, "binary=nova-compute&host=h1") == [compute]
    assert _services(api, "host=other") == []

    api.change(models.services, last_seen_at=LONG_AGO)
    assert [service["state"] for service in _services(api)] == ["down", "down"]


def test_service_ids_and_keys_by_version(api: WholeAPI) -> None:
    api.add_host("h1")

    assert isinstance(_services(api, version="2.52")[0]["id"], int)
    assert len(_services(api, version="2.53")[0]["id"]) == 36
    assert "forced_down" not in _services(api, version="2.10")[0]


def test_disable_enable_and_force_down_reach_the_schedulers(api: WholeAPI) -> None:
    api.add_host("h1")
    path = f"/v2.1/os-services/{_services(api)[0]['id']}"
    api.change(models.compute_nodes, updated_at=LONG_AGO, failed_builds=5)

    disabled = api.good("PUT", path, {"status": "disabled", "disabled_reason": "broken fan"})["service"]
    assert (disabled["status"], disabled["disabled_reason"]) == ("disabled", "broken fan")
    assert (_node(api).failed_builds, _node(api).updated_at > LONG_AGO) == (5, True)

    api.change(models.compute_nodes, updated_at=LONG_AGO)
    assert api.good("PUT", path, {"forced_down": True})["service"]["state"] == "down"
    assert _node(api).updated_at > LONG_AGO

    enabled = api.good("PUT", path, {"status": "enabled", "forced_down": False})["service"]
    assert (enabled["status"], enabled["state"], enabled["disabled_reason"]) == ("enabled", "up", None)
    assert _node(api).failed_builds == 0


@pytest.mark.parametrize(
    "body",
    [{}, {"status": "broken"}, {"disabled_reason": "x"}, {"status": "enabled", "disabled_reason": "x"}, {"host": "h1"}],
)
def test_bad_service_updates(api: WholeAPI, body: dict[str, Any]) -> None:
    api.add_host("h1")

    assert api.ask("PUT", f"/v2.1/os-services/{_services(api)[0]['id']}", body).status_code == 400


def test_only_compute_services_are_updated(api: WholeAPI) -> None:
    api.db.write(lambda conn: registry.register_service(conn, "nova-conductor", "c1", "c1"))

    answer = api.ask("PUT", f"/v2.1/os-services/{_services(api)[0]['id']}", {"status": "disabled"})

    assert answer.status_code == 400


def test_legacy_service_actions(api: WholeAPI) -> None:
    api.add_host("h1")
    host = {"host": "h1", "binary": "nova-compute"}

    def act(action: str, version: str = "2.52", **more: Any) -> Any:
        return api.ask("PUT", f"/v2.1/os-services/{action}", {**host, **more}, version=version)

    assert act("disable").json == {"service": {**host, "status": "disabled"}}
    logged = act("disable-log-reason", disabled_reason="why").json["service"]
    assert logged == {**host, "status": "disabled", "disabled_reason": "why"}
    assert act("enable").json == {"service": {**host, "status": "enabled"}}
    assert act("force-down", forced_down=True).json == {"service": {**host, "forced_down": True}}
    assert act("disable-log-reason").status_code == 400
    assert act("force-down", version="2.10").status_code == 404
    assert act("explode").status_code == 404
    assert act("enable", version="2.53").status_code == 400
    missing = {"host": "none", "binary": "nova-compute"}
    assert api.ask("PUT", "/v2.1/os-services/enable", missing, version="2.1").status_code == 404


def test_service_with_servers_is_not_deleted(api: WholeAPI) -> None:
    api.add_host("h1")
    path = f"/v2.1/os-services/{_services(api)[0]['id']}"
    api.add_instance(ONE)
    assert api.ask("DELETE", path).status_code == 409
    api.change(models.instances, deleted=1)
    allocation = {"consumer": ONE, "node_id": _node(api).id}
    api.db.write(lambda conn: conn.execute(sa.insert(models.allocations).values(**allocation)))
    assert api.ask("DELETE", path).status_code == 409
    api.db.write(lambda conn: conn.execute(sa.delete(models.allocations)))

    assert api.ask("DELETE", path).status_code == 204

    assert _services(api) == []
    assert api.count(models.compute_nodes) == 0


def _add_move(api: WholeAPI, move_type: str, status: str, source: str, dest: str | None, is_open: bool = True) -> str:
    """Write a move of the server ONE; return its uuid, which its half of the server's allocations names."""
    row = {
        **dict.fromkeys(("operation_uuid", "source_node", "old_flavor", "new_flavor", "project_id", "user_id"), "x"),
        "uuid": "bbbbbbbb-0000-4000-8000-000000000001",
        "instance_uuid": ONE,
        "type": move_type,
        "status": status,
        "open": is_open,
        "source_compute": source,
        "source_node_id": 1,
        "dest_compute": dest,
        "old_vm_state": "active",
    }
    api.db.write(lambda conn: conn.execute(sa.insert(models.migrations).values(**row)))
    return str(row["uuid"])


def _move(api: WholeAPI) -> Any:
    columns = (models.migrations.c.status, models.migrations.c.open)
    return tuple(api.db.read(lambda conn: conn.execute(sa.select(*columns)).one()))


@pytest.mark.parametrize(
    ("move_type", "status", "source", "dest", "is_open", "code"),
    [
        ("resize", "accepted", "h1", None, True, 409),
        ("resize", "finished", "h1", "h2", True, 409),
        ("resize", "finished", "h2", "h1", True, 409),
        ("resize", "confirmed", "h1", "h2", False, 204),
        ("live-migration", "running", "h2", "h1", True, 409),
        ("migration", "finished", "h2", "h3", True, 204),
        ("evacuation", "accepted", "h1", None, True, 409),
        ("evacuation", "pre-migrating", "h2", "h1", True, 409),
        ("evacuation", "done", "h2", "h1", True, 204),
    ],
)
def test_service_with_moves_is_not_deleted(
    api: WholeAPI, move_type: str, status: str, source: str, dest: str | None, is_open: bool, code: int
) -> None:
    api.add_host("h1")
    _add_move(api, move_type, status, source, dest, is_open)

    answer = api.ask("DELETE", f"/v2.1/os-services/{_services(api)[0]['id']}")

    assert answer.status_code == code
    assert ("in-progress migrations" in answer.text) is (code == 409)
    assert api.count(models.services) == (1 if code == 409 else 0)
    assert _move(api) == (status, is_open)


def test_a_dead_host_whose_servers_were_evacuated_can_be_deleted(api: WholeAPI) -> None:
    api.add_host("h1")
    api.add_host("h2")
    api.add_instance(ONE, host="h2")
    half = _add_move(api, "evacuation", "done", "h1", "h2")
    rows = [{"consumer": ONE, "node_id": _node(api, "h2").id, "migration": ""}]
    rows.append({"consumer": ONE, "node_id": _node(api, "h1").id, "migration": half})
    api.db.write(lambda conn: conn.execute(sa.insert(models.allocations), rows))
    (service,) = _services(api, "host=h1")

    assert api.ask("DELETE", f"/v2.1/os-services/{service['id']}").status_code == 204

    assert _move(api) == ("completed", False)
    left = sa.select(models.allocations.c.node_id, models.allocations.c.migration)
    assert api.db.read(lambda conn: conn.execute(left).all()) == [(_node(api, "h2").id, "")]


def test_a_host_that_keeps_a_server_keeps_its_evacuations_too(api: WholeAPI) -> None:
    api.add_host("h1")
    api.add_instance(ONE)
    half = _add_move(api, "evacuation", "done", "h1", "h2")
    row = {"consumer": ONE, "node_id": _node(api).id, "migration": half}
    api.db.write(lambda conn: conn.execute(sa.insert(models.allocations).values(**row)))

    assert api.ask("DELETE", f"/v2.1/os-services/{_services(api)[0]['id']}").status_code == 409

    assert _move(api) == ("done", True)
    assert api.count(models.allocations) == 1


def test_a_host_that_holds_something_else_keeps_its_evacuations_too(api: WholeAPI) -> None:
    api.add_host("h1")
    half = _add_move(api, "evacuation", "done", "h1", "h2")
    rows = [{"consumer": consumer, "node_id": _node(api).id, "migration": half} for consumer in (ONE, "another")]
    rows[1]["migration"] = ""
    api.db.write(lambda conn: conn.execute(sa.insert(models.allocations), rows))

    assert api.ask("DELETE", f"/v2.1/os-services/{_services(api)[0]['id']}").status_code == 409

    assert _move(api) == ("done", True)
    assert api.count(models.allocations) == 2


@pytest.mark.parametrize(
    ("move_type", "status", "source", "is_open", "words"),
    [
        ("evacuation", "done", "h1", True, "Start its compute service"),
        ("evacuation", "accepted", "h1", True, "Wait until that has ended"),
        ("evacuation", "completed", "h1", False, None),
        ("evacuation", "done", "h2", True, None),
        ("live-migration", "running", "h1", True, None),
    ],
)
@pytest.mark.parametrize("version", ["2.11", "2.52", "2.53", "2.96"])
def test_a_host_is_not_alive_again_before_it_has_cleaned_up(
    api: WholeAPI, version: str, move_type: str, status: str, source: str, is_open: bool, words: str | None
) -> None:
    api.add_host("h1")
    api.change(models.services, forced_down=True)
    _add_move(api, move_type, status, source, "h3", is_open)
    by_uuid = version in ("2.53", "2.96")
    path = _services(api)[0]["id"] if by_uuid else "force-down"
    named = {} if by_uuid else {"host": "h1", "binary": "nova-compute"}

    answer = api.ask("PUT", f"/v2.1/os-services/{path}", {**named, "forced_down": False}, version=version)

    assert answer.status_code == (409 if words else 200)
    assert (words or "") in answer.text
    assert _services(api)[0]["forced_down"] is bool(words)


def test_a_service_that_is_not_forced_down_can_be_said_not_to_be(api: WholeAPI) -> None:
    api.add_host("h1")
    _add_move(api, "evacuation", "done", "h1", "h2")
    path = f"/v2.1/os-services/{_services(api)[0]['id']}"

    assert api.good("PUT", path, {"forced_down": False})["service"]["forced_down"] is False
    assert api.good("PUT", path, {"forced_down": True, "status": "disabled"})["service"]["forced_down"] is True
    assert api.ask("PUT", path, {"forced_down": False, "status": "enabled"}).status_code == 409
    assert _services(api)[0]["status"] == "disabled"


def test_hypervisors_by_version(api: WholeAPI) -> None:
    uuid = api.add_host("h1")

    old = api.good("GET", "/v2.1/os-hypervisors/detail", version="2.1")["hypervisors"][0]
    assert isinstance(old["cpu_info"], str)
    assert (old["memory_mb"], old["memory_mb_used"], old["free_ram_mb"]) == (16384, 512, 15872)
    new = api.good("GET", f"/v2.1/os-hypervisors/{uuid}", version="2.87")["hypervisor"]
    assert new["cpu_info"] == {"arch": "x86_64"}
    latest = api.good("GET", f"/v2.1/os-hypervisors/{uuid}")["hypervisor"]
    assert set(latest) == {
        *("id", "hypervisor_hostname", "state", "status", "hypervisor_type", "hypervisor_version", "host_ip"),
        *("service", "uptime"),
    }
    assert api.ask("GET", "/v2.1/os-hypervisors/statistics").status_code in (400, 404)
    assert api.ask("GET", f"/v2.1/os-hypervisors/{uuid}/uptime").status_code == 404
    stats = api.good("GET", "/v2.1/os-hypervisors/statistics", version="2.87")["hypervisor_statistics"]
    assert (stats["count"], stats["vcpus"]) == (1, 8)


@pytest.mark.parametrize(("version", "status"), [("2.52", 404), ("2.53", 400)])
def test_hypervisor_ids_that_are_none(api: WholeAPI, version: str, status: int) -> None:
    assert api.ask("GET", "/v2.1/os-hypervisors/h1", version=version).status_code == status


def test_hypervisors_found_by_name_and_with_servers(api: WholeAPI) -> None:
    for host in ("h1", "h2"):
        api.add_host(host)
    api.add_instance(ONE)

    path = "/v2.1/os-hypervisors?hypervisor_hostname_pattern=h1&with_servers=true"
    [found] = api.good("GET", path)["hypervisors"]
    assert found["servers"] == [{"uuid": ONE, "name": "server aaaa"}]
    both = api.good("GET", "/v2.1/os-hypervisors?with_servers=true")["hypervisors"]
    assert [len(one["servers"]) for one in both] == [1, 0]
    old = api.good("GET", "/v2.1/os-hypervisors?with_servers=true", version="2.53")["hypervisors"]
    assert ["servers" in one for one in old] == [True, False]
    assert api.ask("GET", "/v2.1/os-hypervisors?hypervisor_hostname_pattern=%25").status_code == 404
    assert api.ask("GET", f"{path}&limit=1").status_code == 400
    search = api.good("GET", "/v2.1/os-hypervisors/example/search", version="2.52")["hypervisors"]
    assert len(search) == 2
    assert api.ask("GET", "/v2.1/os-hypervisors/example/search", version="2.53").status_code == 404


def test_pages_of_hypervisors(api: WholeAPI) -> None:
    uuids = [api.add_host(host) for host in ("h1", "h2")]

    page = api.good("GET", "/v2.1/os-hypervisors?limit=1")
    assert [one["id"] for one in page["hypervisors"]] == uuids[:1]
    assert uuids[0] in page["hypervisors_links"][0]["href"]
    rest = api.good("GET", f"/v2.1/os-hypervisors?marker={uuids[0]}")
    assert [one["id"] for one in rest["hypervisors"]] == uuids[1:]
    unknown = "99999999-9999-4999-8999-999999999999"
    assert api.ask("GET", f"/v2.1/os-hypervisors?marker={unknown}").status_code == 400


def _aggregate(api: WholeAPI, name: str, zone: str | None = None) -> int:
    body = {"aggregate": {"name": name, "availability_zone": zone}}
    return int(api.good("POST", "/v2.1/os-aggregates", body)["aggregate"]["id"])


def _act(api: WholeAPI, aggregate: int, action: str, **argument: Any) -> Any:
    return api.ask("POST", f"/v2.1/os-aggregates/{aggregate}/action", {action: argument})


def test_aggregates_make_zones_and_touch_nodes(api: WholeAPI) -> None:
    api.add_host("h1")
    aggregate = _aggregate(api, "a", "az1")
    api.change(models.compute_nodes, updated_at=LONG_AGO)

    added = _act(api, aggregate, "add_host", host="h1").json["aggregate"]

    assert (added["hosts"], added["metadata"]) == (["h1"], {"availability_zone": "az1"})
    assert added["updated_at"] is not None
    assert _node(api).updated_at > LONG_AGO
    assert _services(api)[0]["zone"] == "az1"
    zones = api.good("GET", "/v2.1/os-availability-zone", user="alice")["availabilityZoneInfo"]
    assert zones == [{"zoneName": "az1", "zoneState": {"available": True}, "hosts": None}]
    detail = api.good("GET", "/v2.1/os-availability-zone/detail")["availabilityZoneInfo"]
    assert detail[0]["hosts"]["h1"]["nova-compute"]["available"] is True

    api.change(models.compute_nodes, updated_at=LONG_AGO)
    _act(api, aggregate, "set_metadata", metadata={"ssd": "true", "availability_zone": None})
    assert _node(api).updated_at > LONG_AGO
    assert _services(api)[0]["zone"] == "nova"


def test_zone_of_a_host_with_servers_stays(api: WholeAPI) -> None:
    api.add_host("h1")
    inside, other = _aggregate(api, "a", "az1"), _aggregate(api, "b", "az2")
    plain = _aggregate(api, "c")
    _act(api, inside, "add_host", host="h1")
    api.add_instance(ONE)

    assert _act(api, other, "add_host", host="h1").status_code == 409
    assert (
        "already has 1 instance(s)" in _act(api, inside, "remove_host", host="h1").json["conflictingRequest"]["message"]
    )
    change = {"aggregate": {"availability_zone": "az3"}}
    assert api.ask("PUT", f"/v2.1/os-aggregates/{inside}", change).status_code == 400
    assert _act(api, inside, "set_metadata", metadata={"availability_zone": None}).status_code == 400
    assert _act(api, plain, "add_host", host="h1").status_code == 200
    assert _act(api, plain, "remove_host", host="h1").status_code == 200
    assert _services(api)[0]["zone"] == "az1"


def test_aggregate_conflicts(api: WholeAPI) -> None:
    api.add_host("h1")
    aggregate = _aggregate(api, "a")

    assert api.ask("POST", "/v2.1/os-aggregates", {"aggregate": {"name": "a"}}).status_code == 409
    assert _act(api, aggregate, "add_host", host="none").status_code == 404
    assert _act(api, aggregate, "remove_host", host="h1").status_code == 404
    _act(api, aggregate, "add_host", host="h1")
    assert _act(api, aggregate, "add_host", host="h1").status_code == 409
    assert api.ask("DELETE", f"/v2.1/os-aggregates/{aggregate}").status_code == 400
    _act(api, aggregate, "remove_host", host="h1")
    assert api.ask("DELETE", f"/v2.1/os-aggregates/{aggregate}").status_code == 200
    assert api.ask("GET", f"/v2.1/os-aggregates/{aggregate}").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"aggregate": {"name": "a", "availability_zone": "a:b"}},
        {"aggregate": {"name": "a", "availability_zone": ""}},
        {"aggregate": {}},
        {"aggregate": {"name": "a", "hosts": []}},
    ],
)
def test_bad_aggregates(api: WholeAPI, body: dict[str, Any]) -> None:
    assert api.ask("POST", "/v2.1/os-aggregates", body).status_code == 400
    assert api.count(models.aggregates) == 0


def test_hosts_until_2_42(api: WholeAPI) -> None:
    api.add_host("h1")

    listed = api.good("GET", "/v2.1/os-hosts", version="2.42")["hosts"]
    assert listed == [{"host_name": "h1", "service": "compute", "zone": "nova"}]
    total = api.good("GET", "/v2.1/os-hosts/h1", version="2.42")["host"][0]["resource"]
    assert (total["project"], total["cpu"]) == ("(total)", 8)
    for all_of_them in ("zone=", "service="):
        assert api.good("GET", f"/v2.1/os-hosts?{all_of_them}", version="2.42")["hosts"] == listed
    assert api.good("GET", "/v2.1/os-hosts?zone=other", version="2.42")["hosts"] == []


def test_a_host_is_enabled_and_disabled_by_its_name_until_2_42(api: WholeAPI) -> None:
    api.add_host("h1")

    answer = api.good("PUT", "/v2.1/os-hosts/h1", {"status": "Disable"}, version="2.42")
    assert answer == {"host": "h1", "status": "disabled"}
    assert _services(api)[0]["status"] == "disabled"
    api.good("PUT", "/v2.1/os-hosts/h1", {"status": "enable"}, version="2.42")
    assert _services(api)[0]["status"] == "enabled"


@pytest.mark.parametrize(
    ("method", "path", "body", "user", "version", "status"),
    [
        ("PUT", "h1", {"status": "broken"}, "root", "2.42", 400),
        ("PUT", "h1", {}, "root", "2.42", 400),
        ("PUT", "h1", {"maintenance_mode": "enable"}, "root", "2.42", 501),
        ("PUT", "h2", {"status": "enable"}, "root", "2.42", 404),
        ("PUT", "h1", {"status": "enable"}, "alice", "2.42", 403),
        ("PUT", "h1", {"status": "enable"}, "root", "2.43", 404),
        ("GET", "h1/startup", None, "root", "2.42", 501),
        ("GET", "h1/shutdown", None, "alice", "2.42", 403),
        ("GET", "h2/reboot", None, "root", "2.42", 404),
        ("GET", "h1/reboot", None, "root", "2.43", 404),
    ],
)
def test_what_is_refused_of_hosts(
    api: WholeAPI, method: str, path: str, body: Any, user: str, version: str, status: int
) -> None:
    api.add_host("h1")

    assert api.ask(method, f"/v2.1/os-hosts/{path}", body, user=user, version=version).status_code == status
    assert _services(api)[0]["status"] == "enabled"


def test_uptime_is_asked_of_hosts_that_are_up(api: WholeAPI) -> None:
    uuid = api.add_host("h1")
    api.change(models.services, last_seen_at=LONG_AGO)

    refused = api.ask("GET", f"/v2.1/os-hypervisors/{uuid}/uptime", version="2.87")
    assert (refused.status_code, "Compute service of h1" in refused.text) == (400, True)
    assert api.good("GET", f"/v2.1/os-hypervisors/{uuid}")["hypervisor"]["uptime"] is None


def test_the_audit_log_tells_of_every_host_that_it_has_not_run(api: WholeAPI) -> None:
    api.add_host("h1")

    path = "/v2.1/os-instance_usage_audit_log"
    log = api.good("GET", f"{path}/2026-03-01%2000:00:00.000001")["instance_usage_audit_log"]
    assert (log["period_beginning"], log["period_ending"]) == ("2026-02-01 00:00:00", "2026-03-01 00:00:00")
    assert (log["num_hosts"], log["hosts_not_run"], log["log"]) == (1, ["h1"], {})
    assert set(api.good("GET", path)["instance_usage_audit_logs"]) == set(log)
    exactly = api.good("GET", f"{path}/2026-03-01%2000:00:00.0")["instance_usage_audit_log"]
    assert exactly["period_ending"] == "2026-02-01 00:00:00"
    whole = api.good("GET", f"{path}/2026-03-02%2000:00:00")["instance_usage_audit_log"]
    assert whole["period_ending"] == "2026-03-01 00:00:00"
    assert api.ask("GET", f"{path}/yesterday").status_code == 400
    assert api.ask("GET", f"{path}/0001-01-01%2000:00:00.0").status_code == 400
    assert api.ask("GET", path, user="alice").status_code == 403


def test_ids_of_aggregates(api: WholeAPI) -> None:
    for unknown in ("-1", "0", "99999999999"):
        assert api.ask("GET", f"/v2.1/os-aggregates/{unknown}").status_code == 404
    assert api.ask("GET", "/v2.1/os-aggregates/one").status_code == 400


def test_what_is_refused_of_images_to_cache(api: WholeAPI) -> None:
    api.add_host("h1")
    aggregate = _aggregate(api, "a")
    _act(api, aggregate, "add_host", host="h1")
    image = {"name": "i", "disk_format": "raw", "container_format": "bare"}
    empty = api.good("POST", "/image/v2/images", image)["id"]
    path = f"/v2.1/os-aggregates/{aggregate}/images"

    for cache in ([], [{"id": "x"}], [{"id": empty}], [{"id": empty}, {"id": empty}]):
        assert api.ask("POST", path, {"cache": cache}).status_code == 400
    assert api.ask("POST", path, {"cache": [{"id": ONE}]}).status_code == 404
    assert api.ask("POST", path, {"cache": [{"id": empty}]}, user="alice").status_code == 403
    assert api.ask("POST", path, {"cache": [{"id": empty}]}, version="2.80").status_code == 404
    unknown = api.ask("POST", "/v2.1/os-aggregates/99/images", {"cache": [{"id": empty}]})
    assert unknown.status_code == 404

# SPDX-License-Identifier: Apache-2.0
"""Events that other services tell: each answered for itself."""

from __future__ import annotations

from typing import Any

import pytest

from nova_lite import identity_file, policy
from nova_lite.context import RequestContext
from nova_lite.objects import instance as states
from nova_lite.objects.instance import DomainInfo
from tests.fixtures.client import ApiError, Client
from tests.fixtures.cloud import PASSWORD, wait_for
from tests.fixtures.inside import InsideCloud
from tests.functional.network.conftest import boot

NOBODY = "11111111-2222-4333-8444-555555555555"


def tell(client: Client, *events: dict[str, Any], version: str = "2.93") -> tuple[int, Any]:
    header = {"OpenStack-API-Version": f"compute {version}"}
    url = f"{client.compute}/os-server-external-events"
    answer = client.session.post(url, json={"events": list(events)}, headers=header, timeout=30)
    return answer.status_code, answer.json()


def test_each_event_is_answered_for_itself(client: Client) -> None:
    server = boot(client)
    nowhere = boot(client, "nowhere", availability_zone="nova", hints={"same_host": NOBODY})
    client.settle([server, nowhere])
    good = {"server_uuid": server, "name": "network-changed", "tag": "a"}

    assert tell(client, good) == (200, {"events": [{**good, "status": "completed", "code": 200}]})
    status, body = tell(
        client,
        {"server_uuid": server, "name": "volume-extended", "status": "failed", "tag": "v"},
        {"server_uuid": NOBODY, "name": "network-vif-plugged"},
        {"server_uuid": nowhere, "name": "network-vif-deleted"},
        {"server_uuid": server, "name": "power-update", "tag": "POWER_UP"},
    )

    assert status == 207
    assert [(event["code"], event["status"]) for event in body["events"]] == [
        (200, "failed"),
        (404, "failed"),
        (422, "failed"),
        (400, "failed"),
    ]
    assert [event.get("tag", "none") for event in body["events"]] == ["v", "none", "none", "POWER_UP"]
    assert tell(client, {"server_uuid": NOBODY, "name": "network-changed"})[0] == 404


def test_names_came_with_microversions(client: Client) -> None:
    server = boot(client)
    client.settle([server])
    for name, since in (
        ("volume-extended", 51),
        ("power-update", 76),
        ("accelerator-request-bound", 82),
        ("volume-reimaged", 93),
    ):
        event = {"server_uuid": server, "name": name, "tag": "POWER_ON"}
        assert tell(client, event, version=f"2.{since}")[0] == 200, name
        assert tell(client, event, version=f"2.{since - 1}")[0] == 400, name
    assert tell(client, {"server_uuid": server, "name": "nothing"})[0] == 400
    assert tell(client)[0] == 400


def test_a_change_of_power_is_looked_at(cloud: InsideCloud, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    server = boot(client)
    client.settle([server])
    monkeypatch.setattr(cloud.compute, "_report_domains", lambda: None)  # which would find it as well, if later
    (domain,) = cloud.driver.domains_of(server)
    cloud.driver._put(DomainInfo(server, domain.node, states.SHUTDOWN))  # without an event of the hypervisor

    assert tell(client, {"server_uuid": server, "name": "power-update", "tag": "POWER_OFF"})[0] == 200

    wait_for(lambda: client.server(server)["status"] == "SHUTOFF", 10)


def test_only_administrators_and_services_may_tell(cloud: InsideCloud, client: Client) -> None:
    server = boot(client)
    client.settle([server])
    identity_file.add_user(cloud.conf.auth.users_file, "teller", PASSWORD, "teller", ("member",))
    user = Client(cloud.url, "teller", PASSWORD)
    with pytest.raises(ApiError) as error:
        user.call(
            "POST",
            "/os-server-external-events",
            {"events": [{"server_uuid": server, "name": "network-changed"}]},
        )
    assert error.value.status == 403


def test_a_service_may_tell(cloud: InsideCloud) -> None:
    service = RequestContext(user_id="neutron", project_id="service", roles=["service"], overwrite=False)
    member = RequestContext(user_id="u", project_id="p", roles=["member"], overwrite=False)
    rule = "os_compute_api:os-server-external-events:create"
    assert (policy.allows(service, rule), policy.allows(member, rule)) == (True, False)

# SPDX-License-Identifier: Apache-2.0
"""Who may do what: every route and every action on servers, asked by everybody, held against one table.

The table says who may: whoever has less gets 401 without a token, 403 with too small a role, and 404 where another
project's thing is asked for. Whoever may gets the answer that the table names. A request that is refused changes
nothing. A route or an action that has no row here fails the tests: it has to be thought about first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

import pytest

from nova_lite.api import app, microversion
from nova_lite.api.openapi import METHODS
from nova_lite.api.request import serves
from nova_lite.api.server_actions import ServerAction
from nova_lite.api.services import Services
from tests.fixtures.furnished_api import IMAGE, KEY, MOVING, PEOPLE, PUBLIC_IMAGE, SERVER, FurnishedAPI

JSON_PATCH = "application/openstack-images-v2.1-json-patch"

# Who may: whoever has a role of at least ..., or of a kind of their own.
PUBLIC, ANY, READER, MEMBER, ADMIN, SERVICE, NOBODY = "public", "any", "reader", "member", "admin", "service", "nobody"
_MAY = {
    ANY: ("reader", "member", "service"),
    READER: ("reader", "member"),
    MEMBER: ("member",),
    ADMIN: (),
    SERVICE: ("service",),
}
# Whose: what belongs to a project is not there for others; a project or a user itself is, and none of their business.
EVERYBODYS, BLUES, OF_BLUE, OF_ALICE = "everybody's", "blue's", "of blue", "of alice"


@dataclass(frozen=True)
class Row:
    """who: see above. whose: whose the thing is. then: the answer to whoever may."""

    who: str
    whose: str = EVERYBODYS
    body: Any = None
    then: int = 200
    query: str = ""
    content_type: str = "application/json"
    version: str = ""


_READ_NETWORK = Row(ANY)
_NEVER = Row(NOBODY, body={})
_NEW_SERVER = {"server": {"name": "s", "imageRef": PUBLIC_IMAGE, "flavorRef": "1", "networks": "none"}}
_SPECS = {"extra_specs": {"own:a": "b"}}
_ITEM, _ITEMS = {"meta": {"x": "y"}}, {"metadata": {"x": "y"}}
_EVENTS = {"events": [{"name": "network-changed", "server_uuid": SERVER}]}
_CONSOLE = {"remote_console": {"protocol": "vnc", "type": "novnc"}}

ROWS: dict[str, Row] = {
    "GET /": Row(PUBLIC),
    "GET /v2": Row(PUBLIC),
    "GET /v2.1": Row(PUBLIC),
    # hosts and services
    "GET /v2.1/os-aggregates": Row(ADMIN),
    "POST /v2.1/os-aggregates": Row(ADMIN, body={"aggregate": {"name": "n"}}),
    "GET /v2.1/os-aggregates/{aggregate_id}": Row(ADMIN),
    "PUT /v2.1/os-aggregates/{aggregate_id}": Row(ADMIN, body={"aggregate": {"name": "n"}}),
    "DELETE /v2.1/os-aggregates/{aggregate_id}": Row(ADMIN),
    "POST /v2.1/os-aggregates/{aggregate_id}/action": Row(ADMIN, body={"set_metadata": {"metadata": {"a": "b"}}}),
    "POST /v2.1/os-aggregates/{aggregate_id}/images": Row(ADMIN, body={"cache": [{"id": IMAGE}]}, then=202),
    "GET /v2.1/os-availability-zone": Row(READER),
    "GET /v2.1/os-availability-zone/detail": Row(ADMIN),
    "GET /v2.1/os-services": Row(ADMIN),
    "PUT /v2.1/os-services/{service_id}": Row(ADMIN, body={"status": "disabled"}),
    "DELETE /v2.1/os-services/{service_id}": Row(ADMIN, then=409),  # it has servers
    "GET /v2.1/os-hosts": Row(ADMIN),
    "GET /v2.1/os-hosts/{host}": Row(ADMIN),
    "PUT /v2.1/os-hosts/{host}": Row(ADMIN, body={"status": "disable"}),
    "GET /v2.1/os-hosts/{host}/startup": Row(ADMIN, then=501),
    "GET /v2.1/os-hosts/{host}/shutdown": Row(ADMIN, then=501),
    "GET /v2.1/os-hosts/{host}/reboot": Row(ADMIN, then=501),
    "GET /v2.1/os-hypervisors": Row(ADMIN),
    "GET /v2.1/os-hypervisors/detail": Row(ADMIN),
    "GET /v2.1/os-hypervisors/statistics": Row(ADMIN),
    "GET /v2.1/os-hypervisors/{hypervisor_id}": Row(ADMIN),
    "GET /v2.1/os-hypervisors/{hypervisor_id}/uptime": Row(ADMIN, then=503),  # no compute answers here
    "GET /v2.1/os-hypervisors/{hypervisor_id}/search": Row(ADMIN),
    "GET /v2.1/os-hypervisors/{hypervisor_id}/servers": Row(ADMIN),
    # images as Compute showed them
    "GET /v2.1/images": Row(ANY),
    "GET /v2.1/images/detail": Row(ANY),
    "GET /v2.1/images/{image_id}": Row(ANY, BLUES),
    "DELETE /v2.1/images/{image_id}": Row(MEMBER, BLUES, then=204),
    "GET /v2.1/images/{image_id}/metadata": Row(ANY, BLUES),
    "PUT /v2.1/images/{image_id}/metadata": Row(MEMBER, BLUES, _ITEMS),
    "POST /v2.1/images/{image_id}/metadata": Row(MEMBER, BLUES, _ITEMS),
    "GET /v2.1/images/{image_id}/metadata/{key}": Row(ANY, BLUES),
    "PUT /v2.1/images/{image_id}/metadata/{key}": Row(MEMBER, BLUES, _ITEM),
    "DELETE /v2.1/images/{image_id}/metadata/{key}": Row(MEMBER, BLUES, then=204),
    # what there is to choose from
    "GET /v2.1/extensions": Row(READER),
    "GET /v2.1/extensions/{alias}": Row(READER),
    "GET /v2.1/flavors": Row(ANY),
    "POST /v2.1/flavors": Row(ADMIN, body={"flavor": {"name": "n", "vcpus": 1, "ram": 1, "disk": 1}}),
    "GET /v2.1/flavors/detail": Row(ANY),
    "GET /v2.1/flavors/{flavor_id}": Row(ANY),
    "PUT /v2.1/flavors/{flavor_id}": Row(ADMIN, body={"flavor": {"description": "d"}}),
    "DELETE /v2.1/flavors/{flavor_id}": Row(ADMIN, then=202),
    "GET /v2.1/flavors/{flavor_id}/os-extra_specs": Row(READER),
    "POST /v2.1/flavors/{flavor_id}/os-extra_specs": Row(ADMIN, body=_SPECS),
    "GET /v2.1/flavors/{flavor_id}/os-extra_specs/{key}": Row(READER),
    "PUT /v2.1/flavors/{flavor_id}/os-extra_specs/{key}": Row(ADMIN, body={"x": "y"}),
    "DELETE /v2.1/flavors/{flavor_id}/os-extra_specs/{key}": Row(ADMIN),
    "GET /v2.1/flavors/{flavor_id}/os-flavor-access": Row(ADMIN, then=404),  # it is public
    "POST /v2.1/flavors/{flavor_id}/action": Row(ADMIN, body={"addTenantAccess": {"tenant": "p"}}, then=409),
    # limits and usage
    "GET /v2.1/limits": Row(ANY),
    "GET /v2.1/os-quota-sets/{project_id}": Row(READER, OF_BLUE),
    "PUT /v2.1/os-quota-sets/{project_id}": Row(ADMIN, OF_BLUE, {"quota_set": {"cores": 9}}),
    "DELETE /v2.1/os-quota-sets/{project_id}": Row(ADMIN, OF_BLUE, then=202),
    "GET /v2.1/os-quota-sets/{project_id}/detail": Row(READER, OF_BLUE),
    "GET /v2.1/os-quota-sets/{project_id}/defaults": Row(ANY),
    "GET /v2.1/os-quota-class-sets/{name}": Row(ADMIN),
    "PUT /v2.1/os-quota-class-sets/{name}": Row(ADMIN, body={"quota_class_set": {"cores": 9}}),
    "GET /v2.1/os-simple-tenant-usage": Row(ADMIN),
    "GET /v2.1/os-simple-tenant-usage/{project_id}": Row(READER, OF_BLUE),
    "GET /v2.1/os-instance_usage_audit_log": Row(ADMIN),
    "GET /v2.1/os-instance_usage_audit_log/{before}": Row(ADMIN),
    # what users and projects have
    "GET /v2.1/os-keypairs": Row(ANY, OF_ALICE, query="user_id={alice}"),
    "POST /v2.1/os-keypairs": Row(
        ANY,
        OF_ALICE,
        {"keypair": {"name": "new", "type": "ssh", "public_key": KEY, "user_id": "{alice}"}},
        201,
    ),
    "GET /v2.1/os-keypairs/{name}": Row(ANY, OF_ALICE, query="user_id={alice}"),
    "DELETE /v2.1/os-keypairs/{name}": Row(ANY, OF_ALICE, then=204, query="user_id={alice}"),
    "GET /v2.1/os-server-groups": Row(READER),
    "POST /v2.1/os-server-groups": Row(MEMBER, body={"server_group": {"name": "g", "policy": "affinity"}}),
    "GET /v2.1/os-server-groups/{group_id}": Row(READER, BLUES),
    "DELETE /v2.1/os-server-groups/{group_id}": Row(MEMBER, BLUES, then=204),
    # servers
    "GET /v2.1/servers": Row(READER),
    "POST /v2.1/servers": Row(MEMBER, body=_NEW_SERVER, then=202),
    "GET /v2.1/servers/detail": Row(READER),
    "GET /v2.1/servers/{server_id}": Row(READER, BLUES),
    "PUT /v2.1/servers/{server_id}": Row(MEMBER, BLUES, {"server": {"name": "taken"}}),
    "DELETE /v2.1/servers/{server_id}": Row(MEMBER, BLUES, then=204),
    "GET /v2.1/servers/{server_id}/os-instance-actions": Row(READER, BLUES),
    "GET /v2.1/servers/{server_id}/os-instance-actions/{request_id}": Row(READER, BLUES),
    "GET /v2.1/servers/{server_id}/migrations": Row(ADMIN, BLUES),
    "GET /v2.1/servers/{server_id}/migrations/{migration_id}": Row(ADMIN, BLUES),
    "DELETE /v2.1/servers/{server_id}/migrations/{migration_id}": Row(ADMIN, BLUES, then=202),
    "POST /v2.1/servers/{server_id}/migrations/{migration_id}/action": Row(ADMIN, BLUES, {"force_complete": None}, 202),
    "GET /v2.1/os-migrations": Row(ADMIN),
    "POST /v2.1/servers/{server_id}/remote-consoles": Row(MEMBER, BLUES, _CONSOLE, 400),  # there are none
    "GET /v2.1/os-console-auth-tokens/{token}": Row(ADMIN, then=404),
    "GET /v2.1/servers/{server_id}/ips": Row(READER, BLUES),
    "GET /v2.1/servers/{server_id}/ips/{network}": Row(READER, BLUES, then=404),
    "GET /v2.1/servers/{server_id}/os-volume_attachments": Row(READER, BLUES),
    "POST /v2.1/servers/{server_id}/os-volume_attachments": Row(MEMBER, BLUES, {}, 501),
    "GET /v2.1/servers/{server_id}/os-volume_attachments/{volume_id}": Row(READER, BLUES, then=404),
    "PUT /v2.1/servers/{server_id}/os-volume_attachments/{volume_id}": Row(MEMBER, BLUES, {}, 404),
    "DELETE /v2.1/servers/{server_id}/os-volume_attachments/{volume_id}": Row(MEMBER, BLUES, then=404),
    "GET /v2.1/servers/{server_id}/shares": Row(READER, BLUES),
    "POST /v2.1/servers/{server_id}/shares": Row(MEMBER, BLUES, {}, 501),
    "GET /v2.1/servers/{server_id}/shares/{share_id}": Row(READER, BLUES, then=404),
    "DELETE /v2.1/servers/{server_id}/shares/{share_id}": Row(MEMBER, BLUES, then=404),
    "GET /v2.1/servers/{server_id}/os-interface": Row(READER, BLUES),
    "POST /v2.1/servers/{server_id}/os-interface": Row(MEMBER, BLUES, {}, 501),
    "GET /v2.1/servers/{server_id}/os-interface/{port_id}": Row(READER, BLUES, then=404),
    "DELETE /v2.1/servers/{server_id}/os-interface/{port_id}": Row(MEMBER, BLUES, then=404),
    "GET /v2.1/servers/{server_id}/diagnostics": Row(ADMIN, BLUES, then=409),  # it has no power
    "POST /v2.1/os-server-external-events": Row(SERVICE, body=_EVENTS),
    "GET /v2.1/servers/{server_id}/metadata": Row(READER, BLUES),
    "PUT /v2.1/servers/{server_id}/metadata": Row(MEMBER, BLUES, _ITEMS),
    "POST /v2.1/servers/{server_id}/metadata": Row(MEMBER, BLUES, _ITEMS),
    "GET /v2.1/servers/{server_id}/metadata/{key}": Row(READER, BLUES),
    "PUT /v2.1/servers/{server_id}/metadata/{key}": Row(MEMBER, BLUES, _ITEM),
    "DELETE /v2.1/servers/{server_id}/metadata/{key}": Row(MEMBER, BLUES, then=204),
    "GET /v2.1/servers/{server_id}/os-server-password": Row(READER, BLUES),
    "DELETE /v2.1/servers/{server_id}/os-server-password": Row(MEMBER, BLUES, then=204),
    "GET /v2.1/servers/{server_id}/tags": Row(READER, BLUES),
    "PUT /v2.1/servers/{server_id}/tags": Row(MEMBER, BLUES, {"tags": ["a"]}),
    "DELETE /v2.1/servers/{server_id}/tags": Row(MEMBER, BLUES, then=204),
    "GET /v2.1/servers/{server_id}/tags/{tag}": Row(READER, BLUES, then=204),
    "PUT /v2.1/servers/{server_id}/tags/{tag}": Row(MEMBER, BLUES, then=204),
    "DELETE /v2.1/servers/{server_id}/tags/{tag}": Row(MEMBER, BLUES, then=204),
    # identity
    "GET /v3": Row(PUBLIC),
    "POST /v3/auth/tokens": Row(PUBLIC, body={"auth": {"identity": {"methods": ["none"]}}}, then=401),
    "GET /v3/auth/tokens": Row(ANY, OF_ALICE),
    "HEAD /v3/auth/tokens": Row(ANY, OF_ALICE),
    "DELETE /v3/auth/tokens": Row(ANY, OF_ALICE, then=204),
    "GET /v3/auth/catalog": Row(ANY),
    "GET /v3/auth/projects": Row(ANY),
    "GET /v3/projects": Row(ADMIN),
    "GET /v3/projects/{project_id}": Row(ANY, OF_BLUE),
    "GET /v3/users": Row(ADMIN),
    "GET /v3/users/{user_id}": Row(ANY, OF_ALICE),
    "GET /v3/users/{user_id}/projects": Row(ANY, OF_ALICE),
    "GET /v3/roles": Row(ADMIN),
    "GET /v3/domains": Row(ANY),
    "GET /v3/domains/{domain_id}": Row(ANY),
    # images
    "GET /image": Row(PUBLIC, then=300),
    "GET /image/versions": Row(PUBLIC),
    "GET /image/v2": Row(PUBLIC, then=300),
    "GET /image/v2/schemas/{name}": Row(ANY),
    "GET /image/v2/images": Row(ANY),
    "POST /image/v2/images": Row(MEMBER, body={"name": "i"}, then=201),
    "GET /image/v2/images/{image_id}": Row(ANY, BLUES),
    "DELETE /image/v2/images/{image_id}": Row(MEMBER, BLUES, then=204),
    "PATCH /image/v2/images/{image_id}": Row(MEMBER, BLUES, [], content_type=JSON_PATCH),
    "GET /image/v2/images/{image_id}/file": Row(ANY, BLUES, then=404),  # its row is there, its file is not
    "PUT /image/v2/images/{image_id}/file": Row(MEMBER, BLUES, b"x", 409, content_type="application/octet-stream"),
    "PUT /image/v2/images/{image_id}/tags/{tag}": Row(MEMBER, BLUES, then=204),
    "DELETE /image/v2/images/{image_id}/tags/{tag}": Row(MEMBER, BLUES, then=204),
    "GET /image/v2/images/{image_id}/members": Row(ANY, BLUES),
    # the built-in network, which nobody can change
    "GET /network": Row(PUBLIC),
    "GET /network/v2.0/networks": _READ_NETWORK,
    "GET /network/v2.0/networks/{network_id}": _READ_NETWORK,
    "GET /network/v2.0/subnets": _READ_NETWORK,
    "GET /network/v2.0/subnets/{subnet_id}": _READ_NETWORK,
    "GET /network/v2.0/ports": Row(READER),
    "GET /network/v2.0/ports/{port_id}": Row(READER, then=404),
    "GET /network/v2.0/quotas/{project_id}": Row(ANY, OF_BLUE),
    "GET /network/v2.0/extensions": _READ_NETWORK,
    "GET /network/v2.0/extensions/{name}": Row(ANY, then=404),
    "GET /network/v2.0/security-groups": _READ_NETWORK,
    "GET /network/v2.0/security-groups/{name}": Row(ANY, then=404),
    "GET /network/v2.0/routers": _READ_NETWORK,
    "GET /network/v2.0/routers/{name}": Row(ANY, then=404),
    "GET /network/v2.0/floatingips": _READ_NETWORK,
    "GET /network/v2.0/floatingips/{name}": Row(ANY, then=404),
}


def _own(then: int = 202, version: str = "") -> Row:
    return Row(MEMBER, BLUES, then=then, version=version)


def _admins(then: int = 202) -> Row:
    return Row(ADMIN, BLUES, then=then)


_WRONG_STATE = 409

#: Action on servers -> its value and its row. The server is ACTIVE, on a host that is up and does not answer.
ACTIONS: dict[str, tuple[Any, Row]] = {
    "os-start": (None, _own(_WRONG_STATE)),
    "os-stop": (None, _own()),
    "pause": (None, _own()),
    "unpause": (None, _own(_WRONG_STATE)),
    "suspend": (None, _own()),
    "resume": (None, _own(_WRONG_STATE)),
    "reboot": ({"type": "SOFT"}, _own()),
    "lock": (None, _own()),
    "unlock": (None, _own()),
    "rescue": (None, _own(400)),  # it was made of no image
    "unrescue": (None, _own(_WRONG_STATE)),
    "shelve": (None, _own()),
    "shelveOffload": (None, _admins(409)),
    "unshelve": (None, _own(_WRONG_STATE)),
    "changePassword": ({"adminPass": "x"}, _own(_WRONG_STATE)),
    "injectNetworkInfo": (None, _admins()),
    "resetNetwork": (None, _admins(410)),
    "trigger_crash_dump": (None, _own(_WRONG_STATE)),
    "os-getConsoleOutput": ({}, _own(503)),
    "os-resetState": ({"state": "active"}, _admins()),
    "os-getVNCConsole": ({"type": "novnc"}, _own(400, "2.5")),
    "os-getSPICEConsole": ({"type": "spice-html5"}, _own(400, "2.5")),
    "os-getRDPConsole": ({"type": "rdp-html5"}, _own(400, "2.5")),
    "os-getSerialConsole": ({"type": "serial"}, _own(400, "2.5")),
    "forceDelete": (None, _own()),
    "restore": (None, _own(_WRONG_STATE)),
    "resize": ({"flavorRef": "2"}, _own()),
    "confirmResize": (None, _own(_WRONG_STATE)),
    "revertResize": (None, _own(_WRONG_STATE)),
    "migrate": (None, _admins()),
    "os-migrateLive": ({"host": None, "block_migration": "auto"}, _admins()),
    "evacuate": ({}, _admins(400)),  # its host is up
    "rebuild": ({"imageRef": IMAGE}, _own()),
    "createImage": ({"name": "i"}, _own()),
    "createBackup": ({"name": "i", "backup_type": "daily", "rotation": 1}, _own()),
}


# --- the routes -------------------------------------------------------------------------------------------------------


def _routes() -> dict[str, str]:
    """Return "METHOD path" -> the newest microversion that serves it."""
    found = {}
    for path, resource in app.routes():
        for method in METHODS:
            handler = getattr(resource, f"on_{method}", None)
            if handler is not None:
                newest = min((last for _first, last in getattr(handler, "bounds", ())), default=microversion.MAXIMUM)
                assert serves(handler, newest)
                found[f"{method.upper()} {path}"] = str(newest)
    return found


ROUTES = _routes()
_ACTION = "POST /v2.1/servers/{server_id}/action"


def _row(route: str) -> Row:
    method, path = route.split(" ")
    if path.startswith("/network/") and method != "GET":
        return _NEVER
    return ROWS[route]


def test_every_route_has_a_row() -> None:
    rows = {*ROWS, _ACTION, *(route for route in ROUTES if " /network/" in route and not route.startswith("GET"))}

    assert set(ROUTES) == rows


def test_every_action_has_a_row() -> None:
    assert set(ServerAction(cast(Services, None)).schemas) == set(ACTIONS)


# --- the questions ----------------------------------------------------------------------------------------------------


def _expected(row: Row, who: str | None) -> int:
    """Return the status that the table means for somebody."""
    if row.who == PUBLIC:
        return row.then
    if who is None:
        return 401
    project, role = PEOPLE[who]
    if row.who == NOBODY:
        return 403
    if role == "admin":
        return row.then
    if row.whose == BLUES and project != "blue":
        return 404
    if row.whose == OF_BLUE and project != "blue":
        return 403
    if row.whose == OF_ALICE and who != "alice":
        return 403
    return row.then if role in _MAY[row.who] else 403


def _ask(furnished: FurnishedAPI, route: str, row: Row, who: str | None, version: str) -> Any:
    method, path = route.split(" ")
    names = {**furnished.names, **_NAMES.get(path, {})}
    if "{migration_id}" in path:
        names["server_id"] = MOVING
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    body = row.body
    if isinstance(body, dict):
        body = json.loads(json.dumps(body).replace("{alice}", furnished.names["alice"]))
    headers = {"Content-Type": row.content_type, "X-Subject-Token": furnished.token("alice")}
    if route == "DELETE /v3/auth/tokens":
        # Whoever asks has a token of their own, but for alice, who is done with hers.
        headers["X-Subject-Token"] = furnished.new_token("alice")
    query = row.query.replace("{alice}", furnished.names["alice"])
    return furnished.ask(method, path, body, user=who, version=version, headers=headers, query_string=query)


# What parameters are to be on a path of their own.
_NAMES = {
    "/v2.1/os-quota-class-sets/{name}": {"name": "default"},
    "/image/v2/schemas/{name}": {"name": "image"},
    "/v2.1/os-hypervisors/{hypervisor_id}/search": {"hypervisor_id": "h1"},
    "/v2.1/os-hypervisors/{hypervisor_id}/servers": {"hypervisor_id": "h1"},
}


def _check(furnished: FurnishedAPI, route: str, row: Row, version: str) -> None:
    wrong = []
    for who in (None, *PEOPLE):
        expected = _expected(row, who)
        answer = _ask(furnished, route, row, who, row.version or version)
        if answer.status_code != expected:
            wrong.append(f"{who or 'nobody'} got {answer.status_code}, not {expected}: {answer.text[:200]}")
        elif answer.status_code >= 400 and furnished.is_changed():
            wrong.append(f"{who or 'nobody'} was refused ({answer.status_code}), and yet something has changed")
        furnished.put_back()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("route", [route for route in ROUTES if route != _ACTION])
def test_who_may(furnished: FurnishedAPI, route: str) -> None:
    _check(furnished, route, _row(route), ROUTES[route])


@pytest.mark.parametrize("action", ACTIONS)
def test_who_may_act_on_a_server(furnished: FurnishedAPI, action: str) -> None:
    value, row = ACTIONS[action]
    asked = Row(row.who, row.whose, {action: value}, row.then, version=row.version)
    _check(furnished, _ACTION, asked, ROUTES[_ACTION])


@pytest.mark.parametrize("action", ["startup", "shutdown", "reboot"])
def test_a_host_is_not_disabled_where_its_power_is(furnished: FurnishedAPI, action: str) -> None:
    answer = furnished.ask("PUT", f"/v2.1/os-hosts/h1/{action}", {"status": "disable"}, user="admin", version="2.42")

    assert answer.status_code == 405
    assert not furnished.is_changed()


def test_the_versions_of_the_network_are_only_read(furnished: FurnishedAPI) -> None:
    assert {furnished.ask(method, "/network", user=None).status_code for method in ("POST", "PUT", "DELETE")} == {405}

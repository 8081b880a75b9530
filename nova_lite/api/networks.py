# SPDX-License-Identifier: Apache-2.0
"""/network: the built-in network, as much of Neutron's API v2.0 as stock clients need to name it and to find ports.

It can be looked at and not changed: what there is follows from [network], and ports come and go with servers. What
Neutron may have and this cloud never has (security groups, routers, floating IPs) are empty lists.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv4Address
from typing import Any, NoReturn

import falcon

from nova_lite import exception, policy
from nova_lite.api import validation
from nova_lite.api.request import Request, takes
from nova_lite.api.services import Services
from nova_lite.api.views import networks as views
from nova_lite.db import ports
from nova_lite.db.ports import PortRow, Wanted
from nova_lite.objects.network import Network

Query = dict[str, list[str]]

_ANY_QUERY = validation.query_of({})
# How a list is shown, and not what is in it.
_SHOWING = ("fields", "limit", "marker", "sort_key", "sort_dir", "page_reverse")
_READ_ONLY = (
    "The network of this cloud is described in its configuration: it can be used and looked at, and changed by its "
    "operator alone. Ports come and go with servers."
)


class _Resource:
    def __init__(self, services: Services) -> None:
        self._services = services

    @property
    def _network(self) -> Network:
        network = self._services.network
        assert network is not None  # the routes are there only with one
        return network


class _ReadOnly(_Resource):
    def on_post(self, req: Request, resp: falcon.Response, **ids: str) -> NoReturn:
        """Refuse to change anything."""
        raise exception.Forbidden(_READ_ONLY)

    on_put = on_delete = on_patch = on_post


class Versions(_Resource):
    """/network"""

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """Say which versions there are; clients ask before they have a token."""
        resp.media = {"versions": [views.version(req)]}


class Networks(_ReadOnly):
    """/network/v2.0/networks"""

    @takes(query=_ANY_QUERY)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List the only network."""
        policy.authorize(req.nova, "network:get_network")
        _answer(resp, "networks", [views.network(self._network, bool(req.nova.is_admin))], _query(req))


class NetworkResource(_ReadOnly):
    """/network/v2.0/networks/{network_id}"""

    @takes(query=_ANY_QUERY)
    def on_get(self, req: Request, resp: falcon.Response, network_id: str) -> None:
        """Show the network."""
        policy.authorize(req.nova, "network:get_network")
        if network_id != self._network.id:
            raise exception.NotFound(f"Network {network_id[:64]} could not be found.")
        resp.media = {"network": _fields(views.network(self._network, bool(req.nova.is_admin)), _query(req))}


class Subnets(_ReadOnly):
    """/network/v2.0/subnets"""

    @takes(query=_ANY_QUERY)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List the only subnet."""
        policy.authorize(req.nova, "network:get_network")
        _answer(resp, "subnets", [views.subnet(self._network)], _query(req))


class SubnetResource(_ReadOnly):
    """/network/v2.0/subnets/{subnet_id}"""

    @takes(query=_ANY_QUERY)
    def on_get(self, req: Request, resp: falcon.Response, subnet_id: str) -> None:
        """Show the subnet."""
        policy.authorize(req.nova, "network:get_network")
        if subnet_id != self._network.subnet_id:
            raise exception.NotFound(f"Subnet {subnet_id[:64]} could not be found.")
        resp.media = {"subnet": _fields(views.subnet(self._network), _query(req))}


class Ports(_ReadOnly):
    """/network/v2.0/ports"""

    @takes(query=_ANY_QUERY)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List the ports of the project's servers; of all, for administrators."""
        policy.authorize(req.nova, "network:get_port")
        query = _query(req)
        found = self._find(req, query)
        shown = [views.port(row, self._network.subnet_id, bool(req.nova.is_admin)) for row in found]
        # The database has looked after these.
        rest = {name: values for name, values in query.items() if name not in ("fixed_ips", "marker", "limit")}
        _answer(resp, "ports", shown, rest)
        if shown and len(found) == _limit(query, self._services.conf.api.max_limit):
            parameters = [(name, value) for name, values in query.items() if name != "marker" for value in values]
            parameters.append(("marker", found[-1].port))
            href = f"{req.public_url}{req.path}?{urllib.parse.urlencode(parameters)}"
            resp.media["ports_links"] = [{"rel": "next", "href": href}]

    def _find(self, req: Request, query: Query) -> list[PortRow]:
        limit, after = _limit(query, self._services.conf.api.max_limit), 0
        mine = None if req.nova.is_admin else req.project_id
        if "marker" in query:
            marker = Wanted(mine, ports=query["marker"])
            rows = self._services.db.read(lambda conn: ports.search(conn, marker, 1))
            if not rows:
                raise exception.BadRequest(f"Invalid input for operation: marker {query['marker'][0][:64]} not found.")
            after = rows[0].id
        wanted = Wanted(mine, query.get("id"), query.get("device_id"), _wanted_addresses(query))
        return self._services.db.read(lambda conn: ports.search(conn, wanted, limit, after))


class PortResource(_ReadOnly):
    """/network/v2.0/ports/{port_id}"""

    @takes(query=_ANY_QUERY)
    def on_get(self, req: Request, resp: falcon.Response, port_id: str) -> None:
        """Show a port."""
        policy.authorize(req.nova, "network:get_port")
        wanted = Wanted(None if req.nova.is_admin else req.project_id, ports=[port_id])
        rows = self._services.db.read(lambda conn: ports.search(conn, wanted, 1))
        if not rows:
            raise exception.NotFound(f"Port {port_id[:64]} could not be found.")
        shown = views.port(rows[0], self._network.subnet_id, bool(req.nova.is_admin))
        resp.media = {"port": _fields(shown, _query(req))}


class Quota(_ReadOnly):
    """/network/v2.0/quotas/{project_id}"""

    def on_get(self, req: Request, resp: falcon.Response, project_id: str) -> None:
        """Show that nothing of the network is limited; servers are, by the quota of compute."""
        if project_id != req.nova.project_id:
            policy.authorize(req.nova, "network:get_quota")
        unlimited = ("network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule")
        resp.media = {"quota": dict.fromkeys((*unlimited, "subnetpool", "rbac_policy"), -1)}


class _Nothing(_ReadOnly):
    key = ""

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List that there are none."""
        resp.media = {self.key: []}


class Extensions(_Nothing):
    """/network/v2.0/extensions"""

    key = "extensions"


class SecurityGroups(_Nothing):
    """/network/v2.0/security-groups"""

    key = "security_groups"


class Routers(_Nothing):
    """/network/v2.0/routers"""

    key = "routers"


class FloatingIPs(_Nothing):
    """/network/v2.0/floatingips"""

    key = "floatingips"


class Absent(_ReadOnly):
    """/network/v2.0/extensions/{alias} and the like: there are none."""

    def on_get(self, req: Request, resp: falcon.Response, name: str) -> None:
        """Say that there is none of that name."""
        raise exception.NotFound(f"{name[:64]} could not be found: this cloud has none of its kind.")


def _query(req: Request) -> Query:
    return req.query()


def _limit(query: Query, most: int) -> int:
    text = query.get("limit", ["0"])[0]
    if not text.isdecimal() or len(text) > 9:
        raise exception.BadRequest(f"Invalid input for operation: limit {text[:64]} is not a number.")
    return min(int(text) or most, most)


def _wanted_addresses(query: Query) -> list[str] | None:
    """Read fixed_ips=ip_address=10.0.0.7, in which a subnet may be named as well (there is one only)."""
    if "fixed_ips" not in query:
        return None
    found = []
    for text in query["fixed_ips"]:
        name, _, value = text.partition("=")
        if name == "subnet_id":
            continue
        try:
            found.append(str(IPv4Address(value if name == "ip_address" else "")))
        except AddressValueError:
            raise exception.BadRequest(f"Invalid input for operation: fixed_ips={text[:64]}: use ip_address=ADDRESS.")
    return found or None


def _answer(resp: falcon.Response, key: str, items: Sequence[dict[str, Any]], query: Query) -> None:
    resp.media = {key: [_fields(item, query) for item in items if _matches(item, query)]}


def _matches(item: dict[str, Any], query: Query) -> bool:
    """Tell whether the item has one of the values that are asked for, in each of the fields.

    :raises BadRequest: it has no such field: a filter that is ignored would list what is not wanted.
    """
    for name, values in query.items():
        if name in _SHOWING:
            continue
        if name not in item:
            raise exception.BadRequest(f"Invalid input for operation: ['{name[:64]}'] is invalid attribute for filter.")
        if not any(_is_like(item[name], value) for value in values):
            return False
    return True


def _is_like(have: Any, wanted: str) -> bool:
    if isinstance(have, bool):
        return str(have).lower() == wanted.lower()
    if isinstance(have, list):
        return wanted in have
    return str("" if have is None else have) == wanted


def _fields(item: dict[str, Any], query: Query) -> dict[str, Any]:
    wanted = query.get("fields")
    return {name: value for name, value in item.items() if name in wanted} if wanted else item


#: Paths as they are mounted, below nothing.
ROUTES: list[tuple[str, type[_Resource]]] = [
    ("/network", Versions),
    ("/network/v2.0/networks", Networks),
    ("/network/v2.0/networks/{network_id}", NetworkResource),
    ("/network/v2.0/subnets", Subnets),
    ("/network/v2.0/subnets/{subnet_id}", SubnetResource),
    ("/network/v2.0/ports", Ports),
    ("/network/v2.0/ports/{port_id}", PortResource),
    ("/network/v2.0/quotas/{project_id}", Quota),
    ("/network/v2.0/extensions", Extensions),
    ("/network/v2.0/extensions/{name}", Absent),
    ("/network/v2.0/security-groups", SecurityGroups),
    ("/network/v2.0/security-groups/{name}", Absent),
    ("/network/v2.0/routers", Routers),
    ("/network/v2.0/routers/{name}", Absent),
    ("/network/v2.0/floatingips", FloatingIPs),
    ("/network/v2.0/floatingips/{name}", Absent),
]

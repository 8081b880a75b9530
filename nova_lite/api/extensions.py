# SPDX-License-Identifier: Apache-2.0
"""/extensions: names of parts of the API, from the time before microversions; some clients still look."""

from __future__ import annotations

from typing import Any

import falcon

from nova_lite import exception, policy
from nova_lite.api.request import Request
from nova_lite.api.services import Services

_NAMES = {
    "OS-EXT-AZ": "ExtendedAvailabilityZone",
    "OS-EXT-IPS": "ExtendedIps",
    "OS-EXT-SRV-ATTR": "ExtendedServerAttributes",
    "OS-EXT-STS": "ExtendedStatus",
    "OS-FLV-DISABLED": "FlavorDisabled",
    "OS-FLV-EXT-DATA": "FlavorExtraData",
    "OS-DCF": "DiskConfig",
    "OS-SRV-USG": "ServerUsage",
    "os-aggregates": "Aggregates",
    "os-availability-zone": "AvailabilityZone",
    "os-config-drive": "ConfigDrive",
    "os-console-output": "ConsoleOutput",
    "os-extended-quotas": "ExtendedQuotas",
    "os-flavor-access": "FlavorAccess",
    "os-flavor-extra-specs": "FlavorExtraSpecs",
    "os-flavor-manage": "FlavorManage",
    "os-hypervisors": "Hypervisors",
    "os-instance-actions": "InstanceActions",
    "os-keypairs": "Keypairs",
    "os-lock-server": "LockServer",
    "os-quota-class-sets": "QuotaClasses",
    "os-quota-sets": "Quotas",
    "os-scheduler-hints": "SchedulerHints",
    "os-server-groups": "ServerGroups",
    "os-services": "Services",
    "os-simple-tenant-usage": "SimpleTenantUsage",
    "os-user-data": "UserData",
}


def _show(alias: str) -> dict[str, Any]:
    return {
        "alias": alias,
        "name": _NAMES[alias],
        "description": "",
        "links": [],
        "namespace": "http://docs.openstack.org/compute/ext/fake_xml",
        "updated": "2014-12-03T00:00:00Z",
    }


class Extensions:
    """/extensions"""

    def __init__(self, services: Services) -> None:
        pass

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, "os_compute_api:extensions")
        resp.media = {"extensions": [_show(alias) for alias in _NAMES]}


class Extension:
    """/extensions/{alias}"""

    def __init__(self, services: Services) -> None:
        pass

    def on_get(self, req: Request, resp: falcon.Response, alias: str) -> None:
        policy.authorize(req.nova, "os_compute_api:extensions")
        if alias not in _NAMES:
            raise exception.NotFound()
        resp.media = {"extension": _show(alias)}


ROUTES: list[tuple[str, type]] = [("/extensions", Extensions), ("/extensions/{alias}", Extension)]

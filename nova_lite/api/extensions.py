# SPDX-License-Identifier: Apache-2.0
"""/extensions: names of parts of the API, from the time before microversions; some clients still look."""

from __future__ import annotations

from typing import Any

import falcon

from nova_lite import exception, policy
from nova_lite.api.request import Request
from nova_lite.api.services import Services

_NAMES = {
    "OS-DCF": "DiskConfig",
    "OS-EXT-AZ": "ExtendedAvailabilityZone",
    "OS-EXT-IMG-SIZE": "ImageSize",
    "OS-EXT-IPS": "ExtendedIps",
    "OS-EXT-IPS-MAC": "ExtendedIpsMac",
    "OS-EXT-SRV-ATTR": "ExtendedServerAttributes",
    "OS-EXT-STS": "ExtendedStatus",
    "OS-FLV-DISABLED": "FlavorDisabled",
    "OS-FLV-EXT-DATA": "FlavorExtraData",
    "OS-SRV-USG": "ServerUsage",
    "os-admin-actions": "AdminActions",
    "os-aggregates": "Aggregates",
    "os-attach-interfaces": "AttachInterfaces",
    "os-availability-zone": "AvailabilityZone",
    "os-config-drive": "ConfigDrive",
    "os-console-output": "ConsoleOutput",
    "os-consoles": "Consoles",
    "os-deferred-delete": "DeferredDelete",
    "os-evacuate": "Evacuate",
    "os-extended-quotas": "ExtendedQuotas",
    "os-flavor-access": "FlavorAccess",
    "os-flavor-extra-specs": "FlavorExtraSpecs",
    "os-flavor-manage": "FlavorManage",
    "os-flavor-rxtx": "FlavorRxtx",
    "os-flavor-swap": "FlavorSwap",
    "os-hosts": "Hosts",
    "os-hypervisors": "Hypervisors",
    "os-instance-actions": "InstanceActions",
    "os-instance_usage_audit_log": "InstanceUsageAuditLog",
    "os-keypairs": "Keypairs",
    "os-lock-server": "LockServer",
    "os-migrations": "Migrations",
    "os-multiple-create": "MultipleCreate",
    "os-quota-class-sets": "QuotaClasses",
    "os-quota-sets": "Quotas",
    "os-rescue": "Rescue",
    "os-scheduler-hints": "SchedulerHints",
    "os-server-diagnostics": "ServerDiagnostics",
    "os-server-external-events": "ServerExternalEvents",
    "os-server-group-quotas": "ServerGroupQuotas",
    "os-server-groups": "ServerGroups",
    "os-server-password": "ServerPassword",
    "os-server-start-stop": "ServerStartStop",
    "os-services": "Services",
    "os-shelve": "Shelve",
    "os-simple-tenant-usage": "SimpleTenantUsage",
    "os-used-limits": "UsedLimits",
    "os-user-data": "UserData",
    "os-user-quotas": "UserQuotas",
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
        """List the extensions."""
        policy.authorize(req.nova, "os_compute_api:extensions")
        resp.media = {"extensions": [_show(alias) for alias in _NAMES]}


class Extension:
    """/extensions/{alias}"""

    def __init__(self, services: Services) -> None:
        pass

    def on_get(self, req: Request, resp: falcon.Response, alias: str) -> None:
        """Show an extension."""
        policy.authorize(req.nova, "os_compute_api:extensions")
        if alias not in _NAMES:
            raise exception.NotFound()
        resp.media = {"extension": _show(alias)}


ROUTES: list[tuple[str, type]] = [("/extensions", Extensions), ("/extensions/{alias}", Extension)]

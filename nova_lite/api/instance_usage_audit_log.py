# SPDX-License-Identifier: Apache-2.0
"""/os-instance_usage_audit_log: which hosts have told of the last month's servers by notifications.

No host here does: what projects used is asked of /os-simple-tenant-usage, which reads the books. So every compute host
is shown as one whose audit has not run, as Nova shows hosts on which it is switched off.
"""

from __future__ import annotations

import datetime
from typing import Any

import falcon

from nova_lite import exception, policy
from nova_lite.api.request import Request
from nova_lite.api.services import Services
from nova_lite.db import compute_services, usage
from nova_lite.db.registry import COMPUTE

_API = "os_compute_api:os-instance-usage-audit-log:"
_FORMAT = "%Y-%m-%d %H:%M:%S"


def last_month(before: datetime.datetime) -> tuple[datetime.datetime, datetime.datetime]:
    """Return when the last month that was over before a time began and ended."""
    end = before.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if end >= before:
        end = (end - datetime.timedelta(days=1)).replace(day=1)
    return (end - datetime.timedelta(days=1)).replace(day=1), end


class _Resource:
    def __init__(self, services: Services) -> None:
        self._db = services.db
        self._down_time: float = services.conf.service_down_time

    def _log(self, before: datetime.datetime) -> dict[str, Any]:
        found = self._db.read(lambda conn: compute_services.search(conn, self._down_time, binary=COMPUTE))
        hosts = sorted(service.host for service in found)
        begin, end = last_month(before)
        return {
            "period_beginning": str(begin),
            "period_ending": str(end),
            "num_hosts": len(hosts),
            "num_hosts_done": 0,
            "num_hosts_running": 0,
            "num_hosts_not_run": len(hosts),
            "hosts_not_run": hosts,
            "total_instances": 0,
            "total_errors": 0,
            "overall_status": f"0 of {len(hosts)} hosts done. 0 errors.",
            "log": {},
        }


class AuditLogs(_Resource):
    """/os-instance_usage_audit_log"""

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "list")
        resp.media = {"instance_usage_audit_logs": self._log(self._db.read(usage.clock))}


class AuditLog(_Resource):
    """/os-instance_usage_audit_log/{before}"""

    def on_get(self, req: Request, resp: falcon.Response, before: str) -> None:
        policy.authorize(req.nova, _API + "show")
        try:
            time = datetime.datetime.strptime(before, f"{_FORMAT}.%f" if "." in before else _FORMAT)
            log = self._log(time)
        except (ValueError, OverflowError):
            raise exception.BadRequest(f"Invalid timestamp for date {before[:64]}: write it as {_FORMAT}.")
        resp.media = {"instance_usage_audit_log": log}


ROUTES: list[tuple[str, type]] = [
    ("/os-instance_usage_audit_log", AuditLogs),
    ("/os-instance_usage_audit_log/{before}", AuditLog),
]

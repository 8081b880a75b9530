# SPDX-License-Identifier: Apache-2.0
"""/os-availability-zone: the zones that servers can be asked to be in."""

from __future__ import annotations

import falcon

from nova_lite import policy
from nova_lite.api.request import Request
from nova_lite.api.services import Services
from nova_lite.api.views import availability_zones as views
from nova_lite.db import compute_services

_API = "os_compute_api:os-availability-zone:"


class _Resource:
    def __init__(self, services: Services) -> None:
        self._db = services.db
        self._down_time: float = services.conf.service_down_time
        self._default_zone: str = services.conf.api.default_availability_zone

    def _services(self) -> list[compute_services.Service]:
        return self._db.read(lambda conn: compute_services.search(conn, self._down_time))


class AvailabilityZones(_Resource):
    """/os-availability-zone"""

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "list")
        usable = [service for service in self._services() if service.zone != compute_services.INTERNAL_ZONE]
        resp.media = {"availabilityZoneInfo": views.listed(usable, self._default_zone, detailed=False)}


class AvailabilityZonesDetail(_Resource):
    """/os-availability-zone/detail"""

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "detail")
        resp.media = {"availabilityZoneInfo": views.listed(self._services(), self._default_zone, detailed=True)}


ROUTES: list[tuple[str, type]] = [
    ("/os-availability-zone", AvailabilityZones),
    ("/os-availability-zone/detail", AvailabilityZonesDetail),
]

# SPDX-License-Identifier: Apache-2.0
"""/os-aggregates: groups of hosts, and the availability zones that they make."""

from __future__ import annotations

import re

import falcon
import sqlalchemy as sa

from nova_lite import exception, policy
from nova_lite.api import image_lookup
from nova_lite.api.request import Request, since, takes
from nova_lite.api.schemas import aggregates as schemas
from nova_lite.api.services import Services
from nova_lite.api.validation import MAX_INT
from nova_lite.api.views import aggregates as views
from nova_lite.db import aggregates, registry
from nova_lite.db.images import ACTIVE
from nova_lite.db.zones import METADATA_KEY
from nova_lite.objects.image import Image

_API = "os_compute_api:os-aggregates:"


class _Resource:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._db = services.db


def _identify(text: str) -> int:
    """Read an id.

    :raises BadRequest: it is not an integer.
    :raises AggregateNotFound: it is one that no aggregate has.
    """
    if not re.fullmatch(r"-?[0-9]+", text):
        raise exception.BadRequest(f"Invalid aggregate id {text[:64]}: it is an integer.")
    if text.startswith("-") or len(text) > 10 or int(text) > MAX_INT:
        raise exception.AggregateNotFound(aggregate=text[:64])
    return int(text)


class Aggregates(_Resource):
    """/os-aggregates"""

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "index")
        resp.media = {"aggregates": [views.detail(req, one) for one in self._db.read(aggregates.search)]}

    @takes(body=schemas.CREATE)
    def on_post(self, req: Request, resp: falcon.Response) -> None:
        policy.authorize(req.nova, _API + "create")
        body = req.json_body()["aggregate"]
        made = self._db.write(lambda conn: aggregates.create(conn, body["name"], body.get("availability_zone")))
        resp.media = {"aggregate": views.created(req, made)}


class AggregateResource(_Resource):
    """/os-aggregates/{aggregate_id}"""

    def on_get(self, req: Request, resp: falcon.Response, aggregate_id: str) -> None:
        policy.authorize(req.nova, _API + "show")
        number = _identify(aggregate_id)
        resp.media = {"aggregate": views.detail(req, self._db.read(lambda conn: aggregates.get(conn, number)))}

    @takes(body=schemas.UPDATE)
    def on_put(self, req: Request, resp: falcon.Response, aggregate_id: str) -> None:
        policy.authorize(req.nova, _API + "update")
        number = _identify(aggregate_id)
        body = req.json_body()["aggregate"]
        zone = {METADATA_KEY: body["availability_zone"]} if "availability_zone" in body else {}
        changed = self._db.write(lambda conn: aggregates.update(conn, number, body.get("name"), zone))
        resp.media = {"aggregate": views.detail(req, changed)}

    def on_delete(self, req: Request, resp: falcon.Response, aggregate_id: str) -> None:
        policy.authorize(req.nova, _API + "delete")
        number = _identify(aggregate_id)
        self._db.write(lambda conn: aggregates.delete(conn, number))


class AggregateAction(_Resource):
    """/os-aggregates/{aggregate_id}/action"""

    @takes(body=schemas.ACTION)
    def on_post(self, req: Request, resp: falcon.Response, aggregate_id: str) -> None:
        number = _identify(aggregate_id)
        [(action, argument)] = req.json_body().items()
        policy.authorize(req.nova, _API + action)
        if action == "add_host":
            changed = self._db.write(lambda conn: aggregates.add_host(conn, number, argument["host"]))
        elif action == "remove_host":
            changed = self._db.write(lambda conn: aggregates.remove_host(conn, number, argument["host"]))
        else:
            metadata = argument["metadata"]
            if ":" in (metadata.get(METADATA_KEY) or ""):
                raise exception.BadRequest("The name of an availability zone has no colon.")
            changed = self._db.write(lambda conn: aggregates.update(conn, number, None, metadata))
        resp.media = {"aggregate": views.detail(req, changed)}


class AggregateImages(_Resource):
    """/os-aggregates/{aggregate_id}/images"""

    @since("2.81")
    @takes(body=schemas.IMAGES)
    def on_post(self, req: Request, resp: falcon.Response, aggregate_id: str) -> None:
        policy.authorize(req.nova, "compute:aggregates:images")
        number = _identify(aggregate_id)
        wanted = [image["id"] for image in req.json_body()["cache"]]
        if len(wanted) > len(set(wanted)):
            raise exception.BadRequest("Duplicate images in request")
        servers = self._db.read(lambda conn: self._servers(conn, number))
        images = [self._image(req, image_id) for image_id in wanted]
        for server in sorted(servers):
            self._services.compute.cache_images(req.nova, server, images)
        resp.status = falcon.HTTP_202

    def _servers(self, conn: sa.Connection, aggregate_id: int) -> set[str]:
        """Return the RPC servers of those of the aggregate's hosts that are up."""
        hosts = aggregates.get(conn, aggregate_id).hosts
        found = registry.compute_servers(conn, hosts, self._services.conf.service_down_time)
        return {server for server, is_up in found.values() if is_up}

    def _image(self, req: Request, image_id: str) -> Image:
        image = image_lookup.show_image(self._services, req.nova, image_id)
        if image.status != ACTIVE:
            raise exception.BadRequest(f"Image {image_id} has no content to copy: its status is {image.status}.")
        return image


ROUTES: list[tuple[str, type]] = [
    ("/os-aggregates", Aggregates),
    ("/os-aggregates/{aggregate_id}", AggregateResource),
    ("/os-aggregates/{aggregate_id}/action", AggregateAction),
    ("/os-aggregates/{aggregate_id}/images", AggregateImages),
]

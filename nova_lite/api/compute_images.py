# SPDX-License-Identifier: Apache-2.0
"""/images: the image service as Compute itself showed it, up to 2.35; images' metadata up to 2.38.

Who may do what is the image service's affair: Glance is asked with the user's own token.
"""

from __future__ import annotations

import falcon
from oslo_utils import timeutils

from nova_lite import exception
from nova_lite.api import image_lookup, paging, server_images
from nova_lite.api.images import ImageResource
from nova_lite.api.request import Request, takes, until
from nova_lite.api.schemas import compute_images as schemas
from nova_lite.api.schemas import server_metadata
from nova_lite.api.services import Services
from nova_lite.api.views import compute_images as views
from nova_lite.db import quotas
from nova_lite.objects.image import CatalogueEntry, CatalogueSearch

_PROXY = "2.35"
_METADATA = "2.38"


class _Resource:
    def __init__(self, services: Services) -> None:
        self._services = services

    def _entry(self, req: Request, image_id: str) -> CatalogueEntry:
        return image_lookup.entry(self._services, req.nova, image_id)

    def _location(self, req: Request, image_id: str) -> str:
        return server_images.location(self._services, req, image_id)

    def _search(self, req: Request) -> tuple[list[CatalogueEntry], paging.Page]:
        query = req.query()
        page = paging.page(query, self._services.conf.api.max_limit)
        found = image_lookup.search(self._services, req.nova, _wanted(query, page)) if page.limit else []
        return found, page


def _wanted(query: dict[str, list[str]], page: paging.Page) -> CatalogueSearch:
    attributes = {inner: query[name][0] for name, inner in schemas.ATTRIBUTES.items() if name in query}
    statuses = views.statuses(query["status"][0]) if "status" in query else ()
    properties = {
        name.removeprefix(schemas.PREFIX): values[0]
        for name, values in query.items()
        if name.startswith(schemas.PREFIX) and len(name) > len(schemas.PREFIX)
    }
    properties |= {inner: query[name][0] for name, inner in schemas.PROPERTIES.items() if name in query}
    if "instance_uuid" in properties:
        # A server is also named by its address.
        properties["instance_uuid"] = properties["instance_uuid"].rpartition("/")[2]
    since = query.get("changes-since", [None])[0]
    if since is not None:
        since = timeutils.normalize_time(timeutils.parse_isotime(since)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return CatalogueSearch(attributes, properties, statuses, since, page.marker, page.limit)


class Images(_Resource):
    """/images"""

    @until(_PROXY)
    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        found, page = self._search(req)
        last = found[-1].image.id if found else ""
        resp.media = {
            "images": [views.summary(req, entry, self._location(req, entry.image.id)) for entry in found],
            **paging.next_links(req, "images", found, page, last),
        }


class ImagesDetail(_Resource):
    """/images/detail"""

    @until(_PROXY)
    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        found, page = self._search(req)
        last = found[-1].image.id if found else ""
        resp.media = {
            "images": [views.detail(req, entry, self._location(req, entry.image.id)) for entry in found],
            **paging.next_links(req, "images/detail", found, page, last),
        }


class Image(_Resource):
    """/images/{image_id}"""

    @until(_PROXY)
    def on_get(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        resp.media = {"image": views.detail(req, self._entry(req, image_id), self._location(req, image_id))}

    @until(_PROXY)
    def on_delete(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        catalogue = self._services.image_catalogue
        if catalogue is None:
            ImageResource(self._services).delete(req, image_id)
        else:
            catalogue.remove(str(req.nova.auth_token), image_id)
        resp.status = falcon.HTTP_204


class _Metadata(_Resource):
    def _items(self, req: Request, image_id: str) -> dict[str, str]:
        return self._entry(req, image_id).image.properties

    def _set(self, req: Request, image_id: str, items: dict[str, str]) -> None:
        """Put these items in the place of all that the image has.

        :raises QuotaExceeded: there are more than an image may have.
        """
        services = self._services
        limits = services.db.read(lambda conn: quotas.limits(conn, services.conf, req.project_id))
        quotas.check_count("metadata_items", 0, limits["metadata_items"], len(items))
        if services.image_catalogue is None:
            ImageResource(services).set_properties(req, image_id, items)
        else:
            services.image_catalogue.set_properties(req.nova.auth_token, image_id, items)


class ImageMetadata(_Metadata):
    """/images/{image_id}/metadata"""

    @until(_METADATA)
    def on_get(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        resp.media = {"metadata": self._items(req, image_id)}

    @until(_METADATA)
    @takes(body=server_metadata.METADATA)
    def on_post(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        """Add items, or change them."""
        given = req.json_body()["metadata"]
        items = {**self._items(req, image_id), **given}
        self._set(req, image_id, items)
        resp.media = {"metadata": items}

    @until(_METADATA)
    @takes(body=server_metadata.METADATA)
    def on_put(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        """Put these items in the place of all others."""
        items = req.json_body()["metadata"]
        self._set(req, image_id, items)
        resp.media = {"metadata": items}


class ImageMetadataItem(_Metadata):
    """/images/{image_id}/metadata/{key}"""

    @until(_METADATA)
    def on_get(self, req: Request, resp: falcon.Response, image_id: str, key: str) -> None:
        items = self._items(req, image_id)
        if key not in items:
            raise exception.NotFound(f"Image {image_id} has no metadata item {key[:255]}.")
        resp.media = {"meta": {key: items[key]}}

    @until(_METADATA)
    @takes(body=server_metadata.ITEM)
    def on_put(self, req: Request, resp: falcon.Response, image_id: str, key: str) -> None:
        """Add one item, or change it."""
        item = req.json_body()["meta"]
        if key not in item:
            raise exception.BadRequest("Request body and URI mismatch")
        self._set(req, image_id, {**self._items(req, image_id), **item})
        resp.media = {"meta": item}

    @until(_METADATA)
    def on_delete(self, req: Request, resp: falcon.Response, image_id: str, key: str) -> None:
        """Remove one item."""
        items = self._items(req, image_id)
        if key not in items:
            raise exception.NotFound(f"Image {image_id} has no metadata item {key[:255]}.")
        self._set(req, image_id, {name: value for name, value in items.items() if name != key})
        resp.status = falcon.HTTP_204


ROUTES: list[tuple[str, type]] = [
    ("/images", Images),
    ("/images/detail", ImagesDetail),
    ("/images/{image_id}", Image),
    ("/images/{image_id}/metadata", ImageMetadata),
    ("/images/{image_id}/metadata/{key}", ImageMetadataItem),
]

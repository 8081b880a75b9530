# SPDX-License-Identifier: Apache-2.0
"""Images in Glance, by its API v2: looked up with the user's token, fetched with the service's own credentials.

The credentials and the session are keystoneauth1's, in the group [glance]; [image] endpoint goes before the catalogue.
nova_lite's own api speaks the same protocol, so compute hosts that do not share its directory use this as well.
"""

from __future__ import annotations

import logging
import time
import urllib.parse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import requests
from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1 import loading
from oslo_config import cfg

from nova_lite import exception
from nova_lite.conf import image as options
from nova_lite.image.driver import ImageCatalogue, ImageServiceUnavailable, checked_id
from nova_lite.objects.image import CatalogueEntry, CatalogueSearch, Content, Image

LOG = logging.getLogger(__name__)

_CHUNK = 1 << 20
_NO_ANSWER = "its answer is not that of an image service."

# What Glance itself says of an image; everything else is a free property. The list is that of its image schema.
_OWN_KEYS = frozenset(
    (
        *("checksum", "container_format", "created_at", "direct_url", "disk_format", "file", "id", "locations"),
        *("min_disk", "min_ram", "name", "os_hash_algo", "os_hash_value", "os_hidden", "owner", "protected"),
        *("schema", "self", "size", "status", "stores", "tags", "updated_at", "virtual_size", "visibility"),
    )
)


# Glance's own properties begin so; nobody else may change them.
_RESERVED = "os_glance_"


class GlanceImages(ImageCatalogue):
    """A Glance, found through [glance] and [image] endpoint."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        options.register_glance(conf)
        self._conf = conf
        try:
            auth = loading.load_auth_from_conf_options(conf, options.GLANCE_GROUP)
        except keystone_errors.AuthPluginException as error:
            raise exception.NovaLiteError(f"The group [glance] is no login at the image service: {error}") from error
        session = loading.load_session_from_conf_options(conf, options.GLANCE_GROUP, auth=auth)
        self._glance = loading.load_adapter_from_conf_options(
            conf,
            options.GLANCE_GROUP,
            session=session,
            endpoint_override=conf.image.endpoint or conf.glance.endpoint_override,
            user_agent="nova-lite",
        )

    def entry(self, token: str | None, image_id: str) -> CatalogueEntry:
        return _entries([self._show(token, image_id)])[0]

    def _show(self, token: str | None, image_id: str) -> Any:
        response = self._get(f"images/{checked_id(image_id)}", token)
        if response.status_code in (403, 404):
            raise exception.ImageNotFound(image=image_id)
        return _body(response, token)

    def search(self, token: str | None, wanted: CatalogueSearch) -> list[CatalogueEntry]:
        query = {**wanted.properties, **wanted.attributes, "sort": "created_at:desc"}
        if wanted.statuses:
            query["status"] = f"in:{','.join(wanted.statuses)}"
        if wanted.changed_since:
            query["updated_at"] = f"gte:{wanted.changed_since}"
        found: list[CatalogueEntry] = []
        marker = wanted.marker
        # Glance gives no more at once than it likes to.
        while len(found) < wanted.limit:
            page = {**query, "limit": str(wanted.limit - len(found)), **({"marker": marker} if marker else {})}
            response = self._get(f"images?{urllib.parse.urlencode(page)}", token)
            if response.status_code in (400, 404):
                raise exception.BadRequest("The image service cannot list images by what was asked for.")
            body = _body(response, token)
            more = _entries(body.get("images") or ())
            found += more
            if not more or not body.get("next"):
                break
            marker = more[-1].image.id
        return found

    def set_properties(self, token: str | None, image_id: str, properties: Mapping[str, str]) -> None:
        for name in properties:
            if name in _OWN_KEYS:
                raise exception.BadRequest(f"{name} is no free property of images; ask the image service to change it.")
        before = self._show(token, image_id)
        had = {name for name in before if name not in _OWN_KEYS and not name.startswith(_RESERVED)}
        patch: list[dict[str, Any]] = [
            {"op": "remove", "path": _pointer(name)} for name in sorted(had - set(properties))
        ]
        for name, value in properties.items():
            if before.get(name) != value:
                patch.append({"op": "replace" if name in had else "add", "path": _pointer(name), "value": value})
        if not patch:
            return
        headers = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
        response = self._call("PATCH", f"images/{checked_id(image_id)}", token, headers=headers, json=patch)
        if response.status_code in (400, 403, 413):
            raise exception.Forbidden(f"The image service refuses to change the image ({response.status_code}).")
        if response.status_code == 404:
            raise exception.ImageNotFound(image=image_id)
        _body(response, token)

    def remove(self, token: str, image_id: str) -> None:
        response = self._call("DELETE", f"images/{checked_id(image_id)}", token)
        if response.status_code in (404, 410):
            raise exception.ImageNotFound(image=image_id)
        if response.status_code in (403, 409):
            raise exception.Forbidden("You are not allowed to delete the image.")
        if response.status_code != 204:
            _body(response, token)

    def fetch(self, image: Image, destination: Path) -> None:
        try:
            response = self._get(f"images/{checked_id(image.id)}/file", None, stream=True)
        except ImageServiceUnavailable as error:
            raise exception.BuildFailed(reason=str(error)) from error
        with response:
            if response.status_code in (204, 403, 404):
                raise exception.ImageUnacceptable(image=image.id, reason="the image service has no data of it.")
            if response.status_code != 200:
                raise exception.BuildFailed(
                    reason=f"the image service answered {response.status_code} when asked for image {image.id}."
                )
            self._receive(image, response, destination)

    def create(self, token: str | None, image: Mapping[str, Any]) -> str:
        body = {**image["properties"], **{key: value for key, value in image.items() if key != "properties"}}
        response = self._call("POST", "images", token, json=body)
        if response.status_code == 401 and token:
            raise exception.Unauthorized()
        if response.status_code in (400, 403, 413):
            raise exception.Forbidden(f"The image service refuses to make the image ({response.status_code}).")
        if response.status_code != 201:
            raise ImageServiceUnavailable(reason=f"it answered {response.status_code}.")
        return str(response.json()["id"])

    def location(self, image_id: str) -> str:
        return f"{self._endpoint()}/v2/images/{checked_id(image_id)}"

    def upload(self, image_id: str, path: Path) -> Content | None:
        try:
            if self.show(None, image_id).status == "active":
                return None
            with path.open("rb") as file:
                headers = {"Content-Type": "application/octet-stream"}
                response = self._call("PUT", f"images/{checked_id(image_id)}/file", None, data=file, headers=headers)
        except (exception.ImageNotFound, ImageServiceUnavailable) as error:
            raise exception.SnapshotFailed(reason=str(error)) from error
        if response.status_code != 204:
            raise exception.SnapshotFailed(
                reason=f"the image service answered {response.status_code} when its content was sent."
            )
        return None

    def delete(self, image_id: str) -> None:
        response = self._call("DELETE", f"images/{checked_id(image_id)}", None)
        if response.status_code not in (204, 404, 410):
            raise ImageServiceUnavailable(reason=f"it answered {response.status_code} when it was to delete an image.")

    def rotate(self, properties: Mapping[str, str], keep: int) -> None:
        wanted = {**properties, "status": "active", "sort": "created_at:desc", "limit": "1000"}
        response = self._call("GET", f"images?{urllib.parse.urlencode(wanted)}", None)
        if response.status_code != 200:
            raise ImageServiceUnavailable(reason=f"it answered {response.status_code} when asked for backups.")
        for image in response.json()["images"][keep:]:
            self.delete(image["id"])

    def _get(self, path: str, token: str | None, stream: bool = False) -> requests.Response:
        return self._call("GET", path, token, stream=stream)

    def _call(
        self, method: str, path: str, token: str | None, headers: Mapping[str, str] | None = None, **more: Any
    ) -> requests.Response:
        """Ask Glance; with a user's token in place of the service's if there is one."""
        try:
            url = f"{self._endpoint()}/v2/{path}"
            sent = {**(headers or {}), **({"X-Auth-Token": token} if token else {})}
            response: requests.Response = self._glance.request(
                url, method, headers=sent, authenticated=not token, raise_exc=False, **more
            )
        except keystone_errors.ClientException as error:
            LOG.warning("Glance cannot be asked path=%s reason=%s", path, error)
            raise ImageServiceUnavailable(reason="it cannot be reached, or refuses the service's login.") from error
        return response

    def _endpoint(self) -> str:
        endpoint: str | None = self._glance.get_endpoint()
        if not endpoint:
            raise ImageServiceUnavailable(
                reason="its address is unknown; set [image] endpoint, or register it in the catalogue."
            )
        return endpoint.rstrip("/").removesuffix("/v2")

    def _receive(self, image: Image, response: requests.Response, destination: Path) -> None:
        """Write the body, within the allowed size and time; the session's timeout bounds each read alone."""
        deadline = time.monotonic() + self._conf.image.fetch_timeout
        limit = self._conf.image.max_size_mb << 20
        received = 0
        try:
            with destination.open("wb") as file:
                for chunk in response.iter_content(_CHUNK):
                    received += len(chunk)
                    if received > limit:
                        raise exception.ImageUnacceptable(
                            image=image.id, reason=f"it has more than the {limit >> 20} MiB that are allowed."
                        )
                    if time.monotonic() > deadline:
                        raise exception.BuildFailed(
                            reason=f"image {image.id} did not arrive within {self._conf.image.fetch_timeout:g} s."
                        )
                    file.write(chunk)
        except requests.RequestException as error:
            raise exception.BuildFailed(reason=f"image {image.id} arrived only in part. Try again.") from error


def _body(response: requests.Response, token: str | None) -> Any:
    """Return the object that a good answer holds.

    :raises Unauthorized: the user's token is not good any more.
    :raises ImageServiceUnavailable: it is no good answer.
    """
    if response.status_code == 401 and token:
        raise exception.Unauthorized()
    if response.status_code != 200:
        raise ImageServiceUnavailable(reason=f"it answered {response.status_code}.")
    try:
        body = response.json()
    except ValueError as error:
        raise ImageServiceUnavailable(reason=_NO_ANSWER) from error
    if not isinstance(body, dict):
        raise ImageServiceUnavailable(reason=_NO_ANSWER)
    return body


def _entries(bodies: Iterable[Any]) -> list[CatalogueEntry]:
    try:
        return [
            CatalogueEntry(image_from_glance(body), body.get("created_at", ""), body.get("updated_at", ""))
            for body in bodies
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImageServiceUnavailable(reason=_NO_ANSWER) from error


def _pointer(name: str) -> str:
    """Return the JSON pointer to a property."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def image_from_glance(body: dict[str, Any]) -> Image:
    """Turn Glance's representation of an image into ours."""
    return Image(
        id=body["id"],
        name=body.get("name"),
        status=body["status"],
        disk_format=body.get("disk_format"),
        container_format=body.get("container_format"),
        size=body.get("size"),
        min_disk=body.get("min_disk") or 0,
        min_ram=body.get("min_ram") or 0,
        owner=body.get("owner"),
        visibility=body.get("visibility", "private"),
        checksum=body.get("checksum"),
        properties={
            key: str(value) for key, value in body.items() if key not in _OWN_KEYS and isinstance(value, str | int)
        },
    )

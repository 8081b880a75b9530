# SPDX-License-Identifier: Apache-2.0
"""/image: the embedded image service, as much of Glance's API v2 as stock clients need.

A project sees its own images and the public ones; making one public is the administrator's.
"""

from __future__ import annotations

import urllib.parse
import uuid
from dataclasses import asdict
from typing import Any

import falcon
from oslo_log import log

from nova_lite import exception, policy
from nova_lite.api import validation
from nova_lite.api.image_files import ImageFiles
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import images as schemas
from nova_lite.api.services import Services
from nova_lite.api.views import images as views
from nova_lite.db import images
from nova_lite.db.images import StoredImage

LOG = log.getLogger(__name__)

_DEFAULT_LIMIT = 25
_OPEN_TO_ALL = (images.PUBLIC, images.COMMUNITY)
# The API's names of attributes that are columns of another name.
_COLUMNS = {"os_hidden": "hidden"}
_PATCH_TYPE = "application/openstack-images-v2.1-json-patch"


class Versions:
    """/image"""

    def __init__(self, services: Services) -> None:
        pass

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """Say which versions there are."""
        resp.status = falcon.HTTP_200 if req.path.endswith("/versions") else falcon.HTTP_300
        resp.media = views.versions(req)


class Schemas:
    """/image/v2/schemas/{name}"""

    def __init__(self, services: Services) -> None:
        pass

    def on_get(self, req: Request, resp: falcon.Response, name: str) -> None:
        """Show what images look like."""
        if name not in ("image", "images"):
            raise exception.NotFound()
        resp.media = views.schema(name)


class _Resource:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._files = ImageFiles(services.conf)

    def _get(self, req: Request, image_id: str) -> StoredImage:
        seen_by = None if req.nova.is_admin else req.nova.project_id
        return self._services.db.read(lambda conn: images.get(conn, image_id, seen_by))

    def _change(self, req: Request, image_id: str, action: str = "modify_image") -> StoredImage:
        """Return an image that the caller may change."""
        image = self._get(req, image_id)
        policy.authorize(req.nova, f"image:{action}", {"project_id": image.owner})
        return image


def _check_sharing(req: Request, visibility: str | None, before: str | None = None) -> None:
    if visibility in _OPEN_TO_ALL and visibility != before:
        policy.authorize(req.nova, "image:publicize_image")


class Images(_Resource):
    """/image/v2/images"""

    @takes(query=schemas.LIST)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List images."""
        query = req.query()
        wanted = _search(req, query, self._services.conf.api.max_limit)
        found = self._services.db.read(lambda conn: images.search(conn, wanted)) if wanted.limit else []
        resp.media = {
            "images": [views.detail(image) for image in found],
            "first": "/v2/images",
            "schema": "/v2/schemas/images",
        }
        if found and len(found) == wanted.limit:
            rest = [(key, value) for key, values in query.items() if key != "marker" for value in values]
            following = urllib.parse.urlencode([*rest, ("marker", found[-1].uuid)])
            resp.media["next"] = f"/v2/images?{following}"

    @takes(body=schemas.CREATE)
    def on_post(self, req: Request, resp: falcon.Response) -> None:
        """Create an image, without content yet."""
        policy.authorize(req.nova, "image:add_image")
        body = req.json_body()
        _refuse_read_only(body)
        image_id = str(uuid.UUID(body.pop("id"))) if body.get("id") else str(uuid.uuid4())
        owner = body.pop("owner", None) or req.project_id
        if owner != req.project_id and not req.nova.is_admin:
            raise exception.Forbidden("You are not permitted to create images owned by another project.")
        _check_sharing(req, body.get("visibility"))
        values = _values(body)
        image = self._services.db.write(lambda conn: images.create(conn, image_id, owner, values))
        resp.status = falcon.HTTP_201
        resp.set_header("Location", f"{req.public_url}/image/v2/images/{image_id}")
        resp.media = views.detail(image)


def _refuse_read_only(names: Any) -> None:
    for name in names:
        if name in schemas.READ_ONLY:
            raise exception.Forbidden(f"Attribute '{name}' is read-only.")


def _values(body: dict[str, Any]) -> dict[str, Any]:
    """Part the attributes of an image, by their columns' names, from its properties."""
    values = {_COLUMNS.get(name, name): value for name, value in body.items() if name in schemas.ATTRIBUTES}
    values["properties"] = {name: value for name, value in body.items() if name not in schemas.ATTRIBUTES}
    return values


_FILTERED_COLUMNS = frozenset(("name", "status", "visibility", "owner", "disk_format", "container_format"))


def _search(req: Request, query: dict[str, list[str]], max_limit: int) -> images.Search:
    parameters = {key: values[0] for key, values in query.items()}
    key, direction = _order(parameters)
    limit = parameters.pop("limit", str(_DEFAULT_LIMIT))
    if not limit.isascii() or not limit.isdigit() or len(limit) > 9:
        raise exception.BadRequest("limit param must be a non-negative integer")
    tags = frozenset(query.get("tag", ()))
    ids = _one_of(parameters.pop("id")) if "id" in parameters else None
    hidden = validation.boolean(parameters.pop("os_hidden", "false"))
    if parameters.get("visibility") == "all":
        del parameters["visibility"]
    equal: dict[str, tuple[Any, ...]] = {
        name: _one_of(parameters.pop(name)) for name in list(parameters) if name in _FILTERED_COLUMNS
    }
    if "protected" in parameters:
        equal["protected"] = (validation.boolean(parameters.pop("protected")),)
    marker = parameters.pop("marker", None)
    return images.Search(
        project_id=None if req.nova.is_admin else req.nova.project_id,
        ids=ids,
        equal=equal,
        tags=tags,
        properties={name: v for name, v in parameters.items() if name not in ("tag", "member_status")},
        hidden=hidden,
        sort_key=key,
        descending=direction == "desc",
        marker=marker,
        limit=min(int(limit), max_limit),
    )


def _order(parameters: dict[str, str]) -> tuple[str, str]:
    """Take the order out of the query: sort=name:asc,..., or sort_key and sort_dir; the first key counts."""
    both = parameters.pop("sort", "").split(",")[0]
    key, _, direction = both.partition(":")
    key = key or parameters.pop("sort_key", "created_at")
    direction = direction or parameters.pop("sort_dir", "desc")
    if key not in images.SORT_KEYS or direction not in ("asc", "desc"):
        raise exception.BadRequest(f"Images cannot be sorted by {key[:64]} {direction[:64]}.")
    return key, direction


def _one_of(value: str) -> tuple[str, ...]:
    """Read a filter: one value, or "in:" and several."""
    if not value.startswith("in:"):
        return (value,)
    return tuple(part.strip().strip('"') for part in value[3:].split(","))


class ImageResource(_Resource):
    """/image/v2/images/{image_id}"""

    def on_get(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        """Show an image."""
        resp.media = views.detail(self._get(req, image_id))

    @takes(body=schemas.PATCH, media_type=_PATCH_TYPE)
    def on_patch(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        """Change an image."""
        if (req.content_type or "").split(";")[0].strip() != _PATCH_TYPE:
            raise falcon.HTTPUnsupportedMediaType(description=f"A patch is sent as {_PATCH_TYPE}.")
        image = self._change(req, image_id)
        operations = req.json_value(_PATCH_TYPE)
        validation.validate(operations, schemas.PATCH, req.version)
        body = _patched(image, operations)
        validation.validate(body, schemas.PATCHED, req.version)
        _check_sharing(req, body["visibility"], image.visibility)
        if body["owner"] != image.owner and not req.nova.is_admin:
            raise exception.Forbidden("Only administrators may give an image to another project.")
        values = _values(body)
        resp.media = views.detail(self._services.db.write(lambda conn: images.update(conn, image_id, values)))

    def on_delete(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        """Delete an image."""
        self.delete(req, image_id)
        resp.status = falcon.HTTP_204

    def delete(self, req: Request, image_id: str) -> None:
        """Delete an image.

        :raises ImageNotFound: there is none, or the caller may not see it.
        :raises Forbidden: the caller may not, or it is protected.
        """
        image = self._change(req, image_id, "delete_image")
        if image.protected:
            raise exception.Forbidden(f"Image {image_id} is protected and cannot be deleted.")
        self._services.db.write(lambda conn: images.delete(conn, image.uuid))
        self._files.remove(image.uuid)
        LOG.info("image deleted image=%s", image.uuid)

    def set_properties(self, req: Request, image_id: str, properties: dict[str, str]) -> None:
        """Put these properties in the place of those that the image has.

        :raises BadRequest: one has the name of something that is no free property.
        """
        image = self._change(req, image_id)
        for name in properties:
            if name == "id" or name in schemas.ATTRIBUTES or name in schemas.READ_ONLY:
                raise exception.BadRequest(f"{name} is no free property of images; ask the image service to change it.")
        self._services.db.write(lambda conn: images.update(conn, image.uuid, {"properties": properties}))


def _patched(image: StoredImage, operations: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the image's attributes and properties as they are after the operations."""
    stored = asdict(image)
    body: dict[str, Any] = {name: stored[_COLUMNS.get(name, name)] for name in schemas.ATTRIBUTES}
    body["tags"] = list(body["tags"])
    body |= image.properties
    for operation in operations:
        name = operation["path"][1:].replace("~1", "/").replace("~0", "~")
        _refuse_read_only([name])
        if name == "id":
            raise exception.Forbidden("Attribute 'id' is read-only.")
        if operation["op"] == "remove":
            if name in schemas.ATTRIBUTES:
                raise exception.Forbidden(f"Property {name} may not be removed.")
            if body.pop(name, None) is None:
                raise exception.Conflict(f"Property {name} does not exist.")
        elif "value" not in operation:
            raise exception.BadRequest(f"The operation on {name} has no value.")
        elif operation["op"] == "replace" and name not in body:
            raise exception.Conflict(f"Property {name} does not exist.")
        else:
            body[name] = operation["value"]
    return body


class ImageFile(_Resource):
    """/image/v2/images/{image_id}/file"""

    @takes(gives="application/octet-stream")
    def on_get(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        """Send an image's content."""
        image = self._get(req, image_id)
        if image.status != images.ACTIVE:
            resp.status = falcon.HTTP_204
            return
        resp.set_stream(self._files.open(image.uuid), image.size or 0)
        resp.content_type = "application/octet-stream"
        resp.set_header("Content-Md5", image.checksum or "")

    @takes(body={}, media_type="application/octet-stream")
    def on_put(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        """Receive an image's content."""
        if (req.content_type or "").split(";")[0].strip() != "application/octet-stream":
            raise falcon.HTTPUnsupportedMediaType(description="Content is sent as application/octet-stream.")
        image = self._change(req, image_id)
        if not image.disk_format or not image.container_format:
            raise exception.BadRequest("Set disk_format and container_format before the content is uploaded.")
        if not self._advance(image_id, (images.QUEUED,), images.SAVING):
            raise exception.Conflict(f"Image {image_id} has its content already, or is just getting it.")
        self._receive(req, image_id, image.disk_format)
        resp.status = falcon.HTTP_204

    def _receive(self, req: Request, image_id: str, disk_format: str) -> None:
        """Store the content; whatever goes wrong leaves the image without any, in a status that says so."""
        after = images.QUEUED
        try:
            content = self._files.receive(image_id, disk_format, req.body_stream(), req.content_length)
            after = images.ACTIVE
        except exception.ImageUnacceptable as error:
            after = images.KILLED
            LOG.warning("image refused image=%s reason=%s", image_id, error)
            raise exception.BadRequest(str(error))
        finally:
            if after != images.ACTIVE:
                self._advance(image_id, (images.SAVING,), after)
        if not self._advance(image_id, (images.SAVING,), images.ACTIVE, **asdict(content)):
            self._files.remove(image_id)
            raise exception.ImageNotFound(image=image_id)
        LOG.info("image uploaded image=%s bytes=%d", image_id, content.size)

    def _advance(self, image_id: str, before: tuple[str, ...], after: str, **values: Any) -> bool:
        return self._services.db.write(lambda conn: images.advance(conn, image_id, before, after, **values))


class ImageTag(_Resource):
    """/image/v2/images/{image_id}/tags/{tag}"""

    def on_put(self, req: Request, resp: falcon.Response, image_id: str, tag: str) -> None:
        """Give an image a tag."""
        image = self._change(req, image_id)
        tags = sorted({*image.tags, tag})
        validation.validate(tags, schemas.ATTRIBUTES["tags"], req.version)
        self._services.db.write(lambda conn: images.update(conn, image_id, {"tags": tags}))
        resp.status = falcon.HTTP_204

    def on_delete(self, req: Request, resp: falcon.Response, image_id: str, tag: str) -> None:
        """Take a tag from an image."""
        image = self._change(req, image_id)
        if tag not in image.tags:
            raise exception.NotFound(f"Image {image_id} has no tag {tag}.")
        tags = [one for one in image.tags if one != tag]
        self._services.db.write(lambda conn: images.update(conn, image_id, {"tags": tags}))
        resp.status = falcon.HTTP_204


class ImageMembers(_Resource):
    """/image/v2/images/{image_id}/members: nobody, ever; sharing with single projects is not offered."""

    def on_get(self, req: Request, resp: falcon.Response, image_id: str) -> None:
        """List the projects that an image is shared with: none."""
        self._get(req, image_id)
        resp.media = {"members": [], "schema": "/v2/schemas/members"}


#: Paths as they are mounted, below nothing.
ROUTES: list[tuple[str, type]] = [
    ("/image", Versions),
    ("/image/versions", Versions),
    ("/image/v2", Versions),
    ("/image/v2/schemas/{name}", Schemas),
    ("/image/v2/images", Images),
    ("/image/v2/images/{image_id}", ImageResource),
    ("/image/v2/images/{image_id}/file", ImageFile),
    ("/image/v2/images/{image_id}/tags/{tag}", ImageTag),
    ("/image/v2/images/{image_id}/members", ImageMembers),
]

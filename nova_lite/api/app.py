# SPDX-License-Identifier: Apache-2.0
"""The WSGI application: routes, and what happens to every request around its resource.

On the way in a request gets its id, its microversion and its user; on the way out the headers that say so. One port
has several faces: compute (/v2.1), network (/network) if there is a built-in one, and in the embedded cloud identity
(/v3) and image (/image).
"""

from __future__ import annotations

import time
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any

import falcon
import falcon.media
import msgspec
from oslo_log import log

from nova_lite import exception
from nova_lite.api import (
    aggregates,
    auth,
    availability_zones,
    compute_images,
    compute_services,
    errors,
    extensions,
    flavors,
    hosts,
    hypervisors,
    identity,
    images,
    instance_actions,
    instance_usage_audit_log,
    keypairs,
    limits,
    microversion,
    migrations,
    networks,
    quota_sets,
    remote_consoles,
    server_actions,
    server_addresses,
    server_attachments,
    server_diagnostics,
    server_external_events,
    server_groups,
    server_metadata,
    server_password,
    server_tags,
    servers,
    usage,
    validation,
    versions,
)
from nova_lite.api.request import STRICT_QUERIES, Request
from nova_lite.api.services import Services
from nova_lite.api.tokens import Tokens
from nova_lite.api.views.identity import Cloud
from nova_lite.context import RequestContext

LOG = log.getLogger(__name__)

WSGIApp = Callable[[dict[str, Any], Callable[..., Any]], Any]

COMPUTE = "/v2.1"

# Each exports ROUTES, a list of (path below /v2.1, resource class).
_NOUNS = (
    aggregates,
    availability_zones,
    compute_images,
    compute_services,
    extensions,
    flavors,
    hosts,
    hypervisors,
    instance_actions,
    instance_usage_audit_log,
    keypairs,
    limits,
    migrations,
    quota_sets,
    remote_consoles,
    server_actions,
    server_addresses,
    server_attachments,
    server_diagnostics,
    server_external_events,
    server_groups,
    server_metadata,
    server_password,
    server_tags,
    servers,
    usage,
)

# What needs no token and has no version yet.
_ROOTS: tuple[tuple[str, type[Any]], ...] = (
    ("/", versions.Root),
    ("/v2", versions.Legacy),
    (COMPUTE, versions.Compute),
)


def routes() -> list[tuple[str, type[Any]]]:
    """Return every route of every face, whether this process is to have it or not: paths and resource classes."""
    compute = [(COMPUTE + path, resource) for noun in _NOUNS for path, resource in noun.ROUTES]
    return [*_ROOTS, *compute, *identity.ROUTES, *images.ROUTES, *networks.ROUTES]


def make_app(services: Services) -> WSGIApp:
    """Make the application of this process."""
    embedded = services.conf.auth.strategy == "embedded"
    tokens = Tokens(services.conf) if embedded else None
    authenticator = auth.EmbeddedAuthenticator(tokens) if tokens else auth.KeystoneAuthenticator()
    compute = _compute_routes(services)
    app: Any = falcon.App(
        request_type=Request,
        middleware=[
            RequestMiddleware(services),
            auth.AuthMiddleware(authenticator),
            NothingLeftOut(),
            ProjectSegment(frozenset(path.split("/")[1] for path, _ in compute)),
            StrictQueries(),
        ],
    )
    app.req_options.strip_url_path_trailing_slash = True
    app.resp_options.media_handlers[falcon.MEDIA_JSON] = falcon.media.JSONHandler(
        dumps=lambda value: msgspec.json.encode(value).decode()
    )
    errors.install(app, issues_tokens=embedded)
    for path, root in _ROOTS:
        app.add_route(path, root(services))
    for path, resource in compute:
        app.add_route(COMPUTE + path, resource)
    if tokens:
        cloud = Cloud(services.conf.auth.region, services.conf.image.endpoint, services.network is not None)
        for path, face in identity.ROUTES:
            app.add_route(path, face(tokens, cloud))
    # Asked for now, so that what is wrong with the login at Glance is found when the process starts.
    if services.image_catalogue is None:
        for path, resource_class in images.ROUTES:
            app.add_route(path, resource_class(services))
    if services.network is not None:
        for path, network_class in networks.ROUTES:
            app.add_route(path, network_class(services))
    if embedded:
        return app
    # Only here: it brings much along that the embedded cloud does without.
    from nova_lite.api.keystone import with_keystone

    return with_keystone(app, services.conf)


def _compute_routes(services: Services) -> list[tuple[str, Any]]:
    made: dict[type, Any] = {}
    routes = []
    for noun in _NOUNS:
        for path, resource in noun.ROUTES:
            if resource not in made:
                made[resource] = resource(services)
            routes.append((path, made[resource]))
    return routes


class RequestMiddleware:
    """Gives a request its id and its microversion, and an answer the headers and the log line that tell of them."""

    def __init__(self, services: Services) -> None:
        self._public_url = (services.conf.api.public_url or "").rstrip("/")
        self._max_body: int = services.conf.api.max_request_body

    def process_request(self, req: Request, resp: falcon.Response) -> None:
        req.started = time.monotonic()
        req.request_id = f"req-{uuid.uuid4()}"
        req.public_url = self._public_url or f"{req.scheme}://{req.netloc}"
        req.max_body = self._max_body
        # Until it is known who asks: what is logged has the request's id.
        RequestContext(request_id=req.request_id)
        if "\0" in req.path:
            raise falcon.HTTPNotFound()  # as whatever has no such name
        if is_compute(req):
            req.version = microversion.requested(
                req.get_header("OpenStack-API-Version"), req.get_header("X-OpenStack-Nova-API-Version")
            )

    def process_response(self, req: Request, resp: falcon.Response, resource: object, succeeded: bool) -> None:
        headers = {"X-OpenStack-Request-ID": req.request_id, "X-Compute-Request-Id": req.request_id}
        if is_compute(req):
            headers["OpenStack-API-Version"] = f"compute {req.version}"
            headers["X-OpenStack-Nova-API-Version"] = str(req.version)
            headers["Vary"] = "OpenStack-API-Version, X-OpenStack-Nova-API-Version"
        resp.set_headers(headers)
        LOG.info(
            "request method=%s path=%s status=%s bytes=%d seconds=%.3f version=%s",
            req.method,
            req.loggable_path,
            resp.status_code,
            _length(resp),
            time.monotonic() - req.started,
            req.version,
        )


def is_compute(req: Request) -> bool:
    """Tell whether the request is for the compute api, the only one with microversions."""
    return req.path.startswith(COMPUTE)


def _length(resp: falcon.Response) -> int:
    # What is rendered here is kept by falcon, and not rendered again.
    body = resp.render_body()
    return len(body) if body is not None else 0


class NothingLeftOut:
    """Refuses a path that ends where an id should be: /servers/ is not the list, but a server that was not named."""

    def process_request(self, req: Request, resp: falcon.Response) -> None:
        if is_compute(req) and not auth.is_public(req) and req.env["PATH_INFO"].endswith("/"):
            raise exception.NotFound()


class StrictQueries:
    """Refuses, from 2.102 on, query parameters of reads that look at none."""

    def process_response(self, req: Request, resp: falcon.Response, resource: object, succeeded: bool) -> None:
        if not succeeded or req.method != "GET" or not req.query_string or req.query_is_read:
            return
        if is_compute(req) and req.version >= STRICT_QUERIES and not auth.is_public(req):
            names = sorted(name for name, _ in urllib.parse.parse_qsl(req.query_string, keep_blank_values=True))
            errors.show(req, resp, 400, validation.unknown_parameters(names))


class ProjectSegment:
    """Takes the project id out of /v2.1/{project_id}/servers, an older form of the path that clients still use."""

    def __init__(self, collections: frozenset[str]) -> None:
        self._collections = collections

    def process_request(self, req: Request, resp: falcon.Response) -> None:
        parts = req.path.split("/", 3)
        if len(parts) < 3 or parts[1] != COMPUTE[1:] or parts[2] in self._collections:
            return
        project = req.nova.project_id
        if parts[2] == project:
            req.project_segment = f"/{project}"
            req.path = "/".join((COMPUTE, *parts[3:]))
        elif len(parts) > 3 and parts[3].split("/")[0] in self._collections:
            raise exception.BadRequest(
                f"Malformed request URL: URL's project_id '{parts[2][:64]}' doesn't match Context's project_id "
                f"'{project}'"
            )

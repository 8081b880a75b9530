# SPDX-License-Identifier: Apache-2.0
"""Errors as the api shows them: one body form for each of its faces, and nothing of the insides.

compute: {"badRequest": {"code": 400, "message": ...}}; identity: {"error": {...}}; image: {"code": ..., ...}; network:
{"NeutronError": {...}}.
"""

from __future__ import annotations

import http
from typing import Any

import falcon
from oslo_log import log

from nova_lite import exception, rpc
from nova_lite.api.request import Request

LOG = log.getLogger(__name__)

_NAMES = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}
_ONE = {"code": {"type": "integer"}, "message": {"type": "string"}}
_TITLED = {**_ONE, "title": {"type": "string"}}


def _form(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


#: What ``show`` writes, by the face that was asked.
SCHEMAS: dict[str, dict[str, Any]] = {
    "compute": {
        "type": "object",
        "propertyNames": {"enum": sorted({*_NAMES.values(), "computeFault"})},
        "additionalProperties": _form(_ONE),
        "minProperties": 1,
        "maxProperties": 1,
    },
    "identity": _form({"error": _form(_TITLED)}),
    "image": _form(_TITLED),
    "network": _form({"NeutronError": _form(dict.fromkeys(("type", "message", "detail"), {"type": "string"}))}),
}
_UNEXPECTED = exception.NovaLiteError.template


def install(app: falcon.App[Any, Any], issues_tokens: bool) -> None:
    """Make the app answer every error in the api's forms.

    :param issues_tokens: whether tokens come from here; keystonemiddleware tells by itself where its own come from.
    """
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(rpc.Timeout, _timeout)
    app.add_error_handler(falcon.HTTPError, _routing)
    app.add_error_handler(exception.NovaLiteError, _known)
    if issues_tokens:
        app.add_error_handler(exception.Unauthorized, _unauthorized)


def show(req: Request, resp: falcon.Response, status: int, message: str) -> None:
    """Write an error to the response in the form of the face that was asked."""
    resp.status = falcon.code_to_http_status(status)
    title = http.HTTPStatus(status).phrase
    if req.path.startswith("/v3"):
        resp.media = {"error": {"code": status, "title": title, "message": message}}
    elif req.path.startswith("/network"):
        name = title.title().replace(" ", "")
        resp.media = {"NeutronError": {"type": name, "message": message, "detail": ""}}
    elif req.path.startswith("/image"):
        resp.media = {"code": status, "title": title, "message": message}
    else:
        resp.media = {_NAMES.get(status, "computeFault"): {"code": status, "message": message}}


def _known(req: Any, resp: falcon.Response, error: exception.NovaLiteError, params: Any) -> None:
    if error.status >= 500:
        LOG.error("request failed method=%s path=%s reason=%s", req.method, req.loggable_path, error)
    show(req, resp, error.status, str(error))


def _unauthorized(req: Any, resp: falcon.Response, error: exception.Unauthorized, params: Any) -> None:
    _known(req, resp, error, params)
    resp.set_header("WWW-Authenticate", f'Keystone uri="{req.public_url}/v3"')


def _timeout(req: Any, resp: falcon.Response, error: Exception, params: Any) -> None:
    LOG.error("request failed method=%s path=%s reason=%s", req.method, req.loggable_path, error)
    show(req, resp, 503, "A service of this cloud did not answer in time. Try again, or ask the operator.")


def _routing(req: Any, resp: falcon.Response, error: falcon.HTTPError, params: Any) -> None:
    messages = {404: "The resource could not be found.", 405: f"The method {req.method} is not allowed here."}
    message = messages.get(error.status_code) or error.description or error.title or ""
    show(req, resp, error.status_code, message)
    if error.headers:
        resp.set_headers(error.headers)


def _unexpected(req: Any, resp: falcon.Response, error: Exception, params: Any) -> None:
    LOG.exception(
        "request failed unexpectedly method=%s path=%s request=%s", req.method, req.loggable_path, req.request_id
    )
    show(req, resp, 500, _UNEXPECTED)

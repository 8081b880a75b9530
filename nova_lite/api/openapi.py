# SPDX-License-Identifier: Apache-2.0
"""The description of the API in OpenAPI's terms, made of what the api itself goes by: routes, schemas and policies.

There is one for every microversion. Bodies and queries are those of ``takes``; what is not served at the version is
left out. Answers are described by their kind alone: what is in them is the API reference's affair, errors excepted.
"""

from __future__ import annotations

import http
import inspect
import re
from collections.abc import Iterator
from typing import Any, cast

from oslo_policy.policy import RuleDefault

from nova_lite import __version__, policy
from nova_lite.api import app, auth, errors
from nova_lite.api.microversion import Version, Versioned
from nova_lite.api.request import Takes, serves
from nova_lite.api.server_actions import ServerAction
from nova_lite.api.services import Services
from nova_lite.api.validation import Schema

METHODS = ("get", "head", "put", "post", "delete", "patch")
_JSON = "application/json"
_TOKEN = "token"
_PARAMETER = re.compile(r"{(\w+)}")
# Beside those of a certain kind of request (_errors).
_ERRORS = (400, 403, 404, 409, 413, 501, 503)
# The faces of the API, by how their paths begin.
_FACES = {app.COMPUTE: "compute", "/v3": "identity", "/image": "image", "/network": "network", "/": "compute"}


def describe(version: Version) -> dict[str, Any]:
    """Return the description of the API at a microversion."""
    rules = _rules()
    paths: dict[str, Any] = {}
    for path, resource in app.routes():
        operations = {
            method: _operation(version, method, path, resource, rules)
            for method in METHODS
            if serves(getattr(resource, f"on_{method}", _Absent), version)
        }
        if operations:
            paths[path] = {**_path_parameters(path), **operations}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nova_lite",
            "summary": "OpenStack's Compute API, with the parts of its neighbours' that stock clients need.",
            "description": f"Microversion {version}, as nova_lite {__version__} serves it.",
            "version": str(version),
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(_FACES.values())],
        "paths": paths,
        "components": {
            "securitySchemes": {_TOKEN: {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}},
            "parameters": {"version": _version_header(version)},
            "schemas": {f"{face}Error": schema for face, schema in errors.SCHEMAS.items()},
        },
    }


class _Absent:
    """What a resource has in the place of a method that it has not."""

    bounds = ((Version(99, 0), Version(0, 0)),)


def _version_header(version: Version) -> dict[str, Any]:
    return {
        "name": "OpenStack-API-Version",
        "in": "header",
        "required": True,
        "description": "The microversion that this is the description of. Without the header a request is served at "
        "2.1.",
        "schema": {"type": "string", "const": f"compute {version}"},
    }


def _path_parameters(path: str) -> dict[str, Any]:
    names = _PARAMETER.findall(path)
    string = {"type": "string", "minLength": 1}
    found = [{"name": name, "in": "path", "required": True, "schema": string} for name in names]
    return {"parameters": found} if found else {}


def _face(path: str) -> str:
    return next(face for start, face in _FACES.items() if path.startswith(start))


def _operation(version: Version, method: str, path: str, resource: type[Any], rules: _Rules) -> dict[str, Any]:
    handler = getattr(resource, f"on_{method}")
    takes: Takes = getattr(handler, "takes", Takes())
    found = rules.get((method, _shape(path)), [])
    operation: dict[str, Any] = {
        "operationId": f"{method}{re.sub(r'[^a-zA-Z0-9]+', '_', path)}".rstrip("_"),
        "tags": [_face(path)],
        "summary": _summary(handler, found, resource),
    }
    if found:
        operation["description"] = "\n".join(
            f"* ``{rule.name}`` ({rule.check_str or 'everybody'}): {rule.description}" for rule in found
        )
    parameters = list(_query(takes, version))
    if path.startswith(f"{app.COMPUTE}/"):
        parameters.append({"$ref": "#/components/parameters/version"})
    if parameters:
        operation["parameters"] = parameters
    if takes.body is not None:
        schema = _actions(version) if resource is ServerAction else _at(takes.body, version)
        required = takes.media_type == _JSON
        operation["requestBody"] = {"required": required, "content": {takes.media_type: {"schema": schema or {}}}}
    operation["responses"] = _responses(method, path, takes, resource)
    public = auth.needs_no_token(method.upper(), path)
    operation["security"] = [] if public else [{_TOKEN: []}]
    return operation


def _at(schema: Schema | Versioned[Schema] | None, version: Version) -> Schema | None:
    return schema.at(version) if isinstance(schema, Versioned) else schema


def _actions(version: Version) -> Schema:
    """Any of the actions on a server; each names itself by the only key of its body."""
    # Resources keep what they are given and do nothing with it before a request.
    known = ServerAction(cast(Services, None)).schemas
    found = {name: _at(schema, version) for name, schema in known.items()}
    return {"oneOf": [{"title": name, **schema} for name, schema in found.items() if schema is not None]}


def _query(takes: Takes, version: Version) -> Iterator[dict[str, Any]]:
    """Describe query parameters; those that are given once are shown as what they are, not as lists of one."""
    schema = _at(takes.query, version) or {}
    for name, values in schema.get("properties", {}).items():
        shown = values["items"] if values.get("maxItems") == 1 else values
        yield {"name": name, "in": "query", "schema": shown}


def _summary(handler: Any, rules: list[RuleDefault], resource: type[Any]) -> str:
    """Say what an operation does: in the method's own words, in its policy's, or in those of its class."""
    text = inspect.getdoc(handler) or (rules[0].description if rules else inspect.getdoc(resource)) or ""
    return text.split("\n")[0].rstrip(".")


# --- policies ---------------------------------------------------------------------------------------------------------

_Rules = dict[tuple[str, str], list[RuleDefault]]


def _rules() -> _Rules:
    """Return the policies by method and shape of the path; those of actions are among their path's."""
    found: _Rules = {}
    for rule in policy.list_rules():
        for operation in getattr(rule, "operations", ()):
            path = str(operation["path"]).split(" ")[0]
            if _face(path) == "compute":
                path = app.COMPUTE + path
            found.setdefault((operation["method"].lower(), _shape(path)), []).append(rule)
    return found


def _shape(path: str) -> str:
    """Return the path with nameless parameters, which policies and routes call differently."""
    return _PARAMETER.sub("{}", path)


# --- answers ----------------------------------------------------------------------------------------------------------


def _responses(method: str, path: str, takes: Takes, resource: type[Any]) -> dict[str, Any]:
    success = {"description": "It is done, or accepted: then it is under way.", "content": {takes.gives: {}}}
    if takes.gives == _JSON:
        success["content"] = {_JSON: {"schema": {"type": "object"}}}
    found: dict[str, Any] = {
        "2XX": {"description": "It is done, or accepted and under way."} if method == "head" else success,
        "204": {"description": "It is done, and there is nothing to say."},
    }
    public = auth.needs_no_token(method.upper(), path)
    if public:
        found["300"] = success
    schema = {"$ref": f"#/components/schemas/{_face(path)}Error"}
    for status in _errors(path, takes, resource, public):
        found[str(status)] = {
            "description": http.HTTPStatus(status).phrase,
            "content": {_JSON: {"schema": schema}},
        }
    return found


def _errors(path: str, takes: Takes, resource: type[Any], public: bool) -> list[int]:
    found = [*_ERRORS]
    if not public or path == "/v3/auth/tokens":
        found.append(401)
    if path.startswith(app.COMPUTE):
        found.append(406)
    if takes.media_type != _JSON:
        found.append(415)
    if resource is ServerAction:
        found.append(410)
    return sorted(found)

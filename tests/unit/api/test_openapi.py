# SPDX-License-Identifier: Apache-2.0
"""The description of the API: valid at every turn of the schemas, complete, and of nothing that is not served."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from typing import Any

import openapi_spec_validator
import pytest

from nova_lite.api import app, microversion, openapi
from nova_lite.api.microversion import Version
from nova_lite.api.request import Takes

# Reads that let a method have what comes with a request.
_READS = {"json_body": "body", "json_value": "body", "body_stream": "body", "raw_body": "body", "query": "query"}
_HANDLERS = sorted(
    {
        (f"{resource.__module__}.{resource.__qualname__}.on_{method}", getattr(resource, f"on_{method}"))
        for _path, resource in app.routes()
        for method in openapi.METHODS
        if hasattr(resource, f"on_{method}")
    },
    key=lambda pair: pair[0],
)


@pytest.fixture(scope="module")
def newest() -> dict[str, Any]:
    return openapi.describe(microversion.MAXIMUM)


def _operations(description: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method, path): operation
        for path, item in description["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }


@pytest.mark.parametrize("version", [microversion.MINIMUM, Version(2, 53), microversion.MAXIMUM], ids=str)
def test_it_is_valid(version: Version) -> None:
    openapi_spec_validator.validate(json.loads(json.dumps(openapi.describe(version))))


def test_every_route_is_there_at_the_versions_that_serve_it(newest: dict[str, Any]) -> None:
    served = {
        path
        for version in (microversion.MINIMUM, microversion.MAXIMUM)
        for _method, path in _operations(openapi.describe(version))
    }

    assert {path for path, _resource in app.routes()} == served
    assert ("get", "/v2.1/os-hosts") not in _operations(newest)
    assert ("get", "/v2.1/os-hosts") in _operations(openapi.describe(Version(2, 42)))
    assert ("put", "/v2.1/flavors/{flavor_id}") not in _operations(openapi.describe(Version(2, 54)))
    assert ("put", "/v2.1/flavors/{flavor_id}") in _operations(openapi.describe(Version(2, 55)))


def test_whoever_writes_says_what_it_reads(newest: dict[str, Any]) -> None:
    """What has no body although it writes is named here, so that none is forgotten."""
    without = {
        (method, path)
        for (method, path), operation in _operations(newest).items()
        if method in ("post", "put", "patch") and "requestBody" not in operation and not path.startswith("/network")
    }

    assert without == {
        ("post", "/v2.1/servers/{server_id}/os-interface"),  # not to be had here
        ("post", "/v2.1/servers/{server_id}/os-volume_attachments"),
        ("put", "/v2.1/servers/{server_id}/os-volume_attachments/{volume_id}"),
        ("post", "/v2.1/servers/{server_id}/shares"),
        ("put", "/v2.1/servers/{server_id}/tags/{tag}"),  # the path says all
        ("put", "/image/v2/images/{image_id}/tags/{tag}"),
    }


@pytest.mark.parametrize("handler", [handler for _name, handler in _HANDLERS], ids=[name for name, _h in _HANDLERS])
def test_a_method_declares_what_it_reads_itself(handler: Any) -> None:
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(handler)))
    read = {
        _READS[node.func.attr]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _READS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "req"
    }
    declared: Takes = getattr(handler, "takes", Takes())

    assert read <= {name for name in ("body", "query") if getattr(declared, name) is not None}


def test_every_operation_says_what_it_does_under_a_name_of_its_own(newest: dict[str, Any]) -> None:
    operations = _operations(newest)

    assert not [key for key, one in operations.items() if not one["summary"] or one["summary"].startswith("/")]
    assert len({one["operationId"] for one in operations.values()}) == len(operations)


def test_schemas_are_those_of_the_version() -> None:
    def create(minor: int) -> dict[str, Any]:
        body = _operations(openapi.describe(Version(2, minor)))["post", "/v2.1/servers"]["requestBody"]
        found: dict[str, Any] = body["content"]["application/json"]["schema"]["properties"]["server"]["properties"]
        return found

    assert "tags" not in create(51)
    assert "tags" in create(52)


def test_actions_on_servers_are_told_apart() -> None:
    def actions(minor: int) -> set[str]:
        described = _operations(openapi.describe(Version(2, minor)))["post", "/v2.1/servers/{server_id}/action"]
        schema = described["requestBody"]["content"]["application/json"]["schema"]
        return {one["title"] for one in schema["oneOf"]}

    assert {"reboot", "os-getVNCConsole"} <= actions(5)
    assert "os-getVNCConsole" not in actions(6)


def test_policies_are_told(newest: dict[str, Any]) -> None:
    shown = _operations(newest)["delete", "/v2.1/servers/{server_id}"]

    assert "os_compute_api:servers:delete" in shown["description"]
    assert shown["security"] == [{"token": []}]
    assert _operations(newest)["post", "/v3/auth/tokens"]["security"] == []

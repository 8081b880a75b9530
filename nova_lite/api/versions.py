# SPDX-License-Identifier: Apache-2.0
"""The versions documents: what a client reads first, and without a token."""

from __future__ import annotations

from typing import Any

import falcon

from nova_lite.api.microversion import MAXIMUM, MINIMUM
from nova_lite.api.request import Request
from nova_lite.api.services import Services

_UPDATED = {"v2.0": "2011-01-21T11:33:21Z", "v2.1": "2013-07-23T11:33:21Z"}


class Root:
    """``/``: all versions. v2.0 is only named, since old clients look for it there."""

    def __init__(self, services: Services) -> None:
        pass

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        resp.media = {"versions": [_summary(req, "v2.0", "v2"), _summary(req, "v2.1", "v2.1")]}


class Compute:
    """``/v2.1/``: the version that is served, and the range of its microversions."""

    def __init__(self, services: Services) -> None:
        pass

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        resp.media = {"version": _document(req, "v2.1", "v2.1")}


class Legacy:
    """``/v2/``: a document that says that there are no microversions there."""

    def __init__(self, services: Services) -> None:
        pass

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        resp.media = {"version": _document(req, "v2.0", "v2")}


def _summary(req: Request, identifier: str, path: str) -> dict[str, Any]:
    current = identifier == "v2.1"
    return {
        "id": identifier,
        "status": "CURRENT" if current else "SUPPORTED",
        "version": str(MAXIMUM) if current else "",
        "min_version": str(MINIMUM) if current else "",
        "updated": _UPDATED[identifier],
        "links": [{"rel": "self", "href": f"{req.public_url}/{path}/"}],
    }


def _document(req: Request, identifier: str, path: str) -> dict[str, Any]:
    document = _summary(req, identifier, path)
    document["links"].append({"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"})
    number = "2.1" if identifier == "v2.1" else "2"
    document["media-types"] = [
        {"base": "application/json", "type": f"application/vnd.openstack.compute+json;version={number}"}
    ]
    return document

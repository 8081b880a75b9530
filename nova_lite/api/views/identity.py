# SPDX-License-Identifier: Apache-2.0
"""Tokens, the catalogue, projects and users as Keystone shows them."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass
from typing import Any

from nova_lite.api.request import Request
from nova_lite.api.tokens import Token
from nova_lite.identity_file import Project, User

DOMAIN = {"id": "default", "name": "Default"}

_NAMESPACE = uuid.UUID("5a3f1c0e-6f0b-4f55-9b1e-0d6d8a3e7c11")
_SERVICES = {"compute": "nova", "identity": "keystone", "image": "glance", "network": "neutron"}


def stable_id(name: str) -> str:
    """Return an id for what has a name only."""
    return uuid.uuid5(_NAMESPACE, name).hex


def _time(time: datetime.datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def version(req: Request) -> dict[str, Any]:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": f"{req.public_url}/v3/"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    }


@dataclass(frozen=True, slots=True)
class Cloud:
    """What the catalogue says beside the request's own URL: the region, where images are if not here, and whether there
    is a network to be asked about."""

    region: str
    image_url: str | None = None
    has_network: bool = False


def catalog(req: Request, cloud: Cloud) -> list[dict[str, Any]]:
    """The same endpoint serves the public, the internal and the administrator."""
    urls = {
        "compute": f"{req.public_url}/v2.1",
        "identity": f"{req.public_url}/v3",
        "image": cloud.image_url or f"{req.public_url}/image",
    }
    if cloud.has_network:
        urls["network"] = f"{req.public_url}/network"
    return [
        {
            "id": stable_id(kind),
            "type": kind,
            "name": name,
            "endpoints": [
                {
                    "id": stable_id(f"{kind} {interface}"),
                    "interface": interface,
                    "region": cloud.region,
                    "region_id": cloud.region,
                    "url": urls[kind],
                }
                for interface in ("public", "internal", "admin")
            ],
        }
        for kind, name in _SERVICES.items()
        if kind in urls
    ]


def token(req: Request, shown: Token, cloud: Cloud, with_catalog: bool = True) -> dict[str, Any]:
    body: dict[str, Any] = {
        "methods": list(shown.methods),
        "user": {
            "id": shown.user.id,
            "name": shown.user.name,
            "domain": DOMAIN,
            "password_expires_at": None,
        },
        "audit_ids": [shown.id[:22]],
        "issued_at": _time(shown.issued_at),
        "expires_at": _time(shown.expires_at),
    }
    if shown.project:
        body["project"] = {"id": shown.project.id, "name": shown.project.name, "domain": DOMAIN}
        body["is_domain"] = False
        body["roles"] = [role(name) for name in shown.roles]
        if with_catalog:
            body["catalog"] = catalog(req, cloud)
    return body


def role(name: str) -> dict[str, str]:
    return {"id": stable_id(f"role {name}"), "name": name}


def role_detail(req: Request, name: str) -> dict[str, Any]:
    shown = role(name)
    links = {"self": f"{req.public_url}/v3/roles/{shown['id']}"}
    return {**shown, "domain_id": None, "description": None, "options": {}, "links": links}


def project(req: Request, shown: Project) -> dict[str, Any]:
    return {
        "id": shown.id,
        "name": shown.name,
        "domain_id": DOMAIN["id"],
        "parent_id": DOMAIN["id"],
        "description": "",
        "enabled": True,
        "is_domain": False,
        "tags": [],
        "options": {},
        "links": {"self": f"{req.public_url}/v3/projects/{shown.id}"},
    }


def user(req: Request, shown: User) -> dict[str, Any]:
    return {
        "id": shown.id,
        "name": shown.name,
        "domain_id": DOMAIN["id"],
        "enabled": shown.enabled,
        "default_project_id": next(iter(shown.roles), None),
        "password_expires_at": None,
        "options": {},
        "links": {"self": f"{req.public_url}/v3/users/{shown.id}"},
    }


def domain(req: Request) -> dict[str, Any]:
    return {
        **DOMAIN,
        "description": "",
        "enabled": True,
        "tags": [],
        "options": {},
        "links": {"self": f"{req.public_url}/v3/domains/{DOMAIN['id']}"},
    }


def listed(req: Request, key: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    links = {"self": f"{req.public_url}{req.path}", "previous": None, "next": None}
    return {key: items, "links": links}

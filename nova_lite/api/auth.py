# SPDX-License-Identifier: Apache-2.0
"""Authentication: from the token of a request to the context of who asks.

Either the api's own tokens (tokens.py), or Keystone's, which keystonemiddleware checks before falcon sees a request
(keystone.py).
The versions documents and the login need no token.
"""

from __future__ import annotations

from typing import Protocol

import falcon

from nova_lite import exception, policy
from nova_lite.api.request import Request
from nova_lite.api.tokens import Tokens
from nova_lite.context import RequestContext

_PUBLIC = frozenset(("/", "/v2", "/v2.1", "/v3", "/image", "/image/versions", "/image/v2", "/network", "/healthcheck"))


# Set in the WSGI environment of a request whose token could not be checked (keystone.py).
KEYSTONE_UNREACHABLE = "nova_lite.keystone_unreachable"


class Authenticator(Protocol):
    """Tells who sent a request."""

    def context(self, req: Request) -> RequestContext:
        """:raises Unauthorized: the token is missing or invalid."""


class EmbeddedAuthenticator:
    """Checks the api's own tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def context(self, req: Request) -> RequestContext:
        text = req.get_header("X-Auth-Token")
        if not text:
            raise exception.Unauthorized()
        token = self._tokens.verify(text)
        project = token.project
        return RequestContext(
            auth_token=text,
            user_id=token.user.id,
            user_name=token.user.name,
            user_domain_id="default",
            user_domain_name="Default",
            project_id=project.id if project else None,
            project_name=project.name if project else None,
            project_domain_id="default",
            project_domain_name="Default",
            roles=list(token.roles),
            request_id=req.request_id,
            global_request_id=req.get_header("X-OpenStack-Request-ID"),
        )


class KeystoneAuthenticator:
    """Reads what keystonemiddleware found out."""

    def context(self, req: Request) -> RequestContext:
        if req.env.get(KEYSTONE_UNREACHABLE):
            raise exception.IdentityUnavailable()
        if req.get_header("X-Identity-Status") != "Confirmed":
            raise exception.Unauthorized()
        return RequestContext.from_environ(
            req.env,
            request_id=req.request_id,
            global_request_id=req.get_header("X-OpenStack-Request-ID"),
        )


class AuthMiddleware:
    """Sets ``req.nova``, or answers 401."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def process_request(self, req: Request, resp: falcon.Response) -> None:
        if is_public(req):
            return
        context = self._authenticator.context(req)
        if context.project_id is None and not req.path.startswith("/v3"):
            raise exception.Forbidden("The token is not scoped to a project.")
        context.is_admin = policy.allows(context, "context_is_admin")
        req.nova = context


def is_public(req: Request) -> bool:
    """Tell whether a request needs no token."""
    return needs_no_token(req.method, req.path)


def needs_no_token(method: str, path: str) -> bool:
    """Tell whether requests with this method to this path need no token."""
    if path == "/v3/auth/tokens":
        return method == "POST"
    return (path.rstrip("/") or "/") in _PUBLIC

# SPDX-License-Identifier: Apache-2.0
"""/v3: the embedded identity service, as much of Keystone's API as stock clients need to log in and find their way.

There is one domain, Default. Users and projects come from the users file, which the API only reads.
"""

from __future__ import annotations

from typing import Any

import falcon

from nova_lite import exception, identity_file, policy
from nova_lite.api.request import Request, takes
from nova_lite.api.schemas import identity as schemas
from nova_lite.api.tokens import Token, Tokens
from nova_lite.api.validation import query_of, single
from nova_lite.api.views import identity as views
from nova_lite.identity_file import Project, User

_FILTERS = query_of({name: single({"type": "string"}) for name in ("name", "domain_id", "enabled")})
_NO_CATALOG = query_of({"nocatalog": single({"type": "string"})})


class _Resource:
    def __init__(self, tokens: Tokens, cloud: views.Cloud) -> None:
        self._tokens = tokens
        self._cloud = cloud


class Version(_Resource):
    """/v3"""

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """Say which version there is."""
        resp.media = {"version": views.version(req)}


class AuthTokens(_Resource):
    """/v3/auth/tokens"""

    @takes(body=schemas.LOGIN, query=_NO_CATALOG)
    def on_post(self, req: Request, resp: falcon.Response) -> None:
        """Log in: issue a token."""
        auth = req.json_body()["auth"]
        query = req.query()
        user, earlier = self._user(auth["identity"])
        project = self._project(auth.get("scope"), user, earlier)
        methods = ("token", *(earlier.methods if earlier else ())) if earlier else ("password",)
        text, token = self._tokens.issue(user, project, tuple(dict.fromkeys(methods)))
        resp.status = falcon.HTTP_201
        self._answer(req, resp, text, token, "nocatalog" not in query)

    def _user(self, identity: dict[str, Any]) -> tuple[User, Token | None]:
        """Return who logs in, and the token that they do it with if it is not a password."""
        methods = identity["methods"]
        if methods == ["password"] and "password" in identity:
            given = identity["password"]["user"]
            if not _is_default(given.get("domain")):
                raise exception.Unauthorized()
            return self._tokens.authenticate(given.get("id") or given.get("name"), given["password"]), None
        if methods == ["token"] and "token" in identity:
            token = self._tokens.verify(identity["token"]["id"])
            return token.user, token
        raise exception.Unauthorized("This identity service knows the methods password and token, one at a time.")

    def _project(self, scope: Any, user: User, earlier: Token | None) -> Project | None:
        """Return the project to scope to; who asks for none gets the one of their earlier token, or their first."""
        directory = self._tokens.directory
        if scope == "unscoped" or (isinstance(scope, dict) and "unscoped" in scope):
            return None
        if scope is None:
            if earlier and earlier.project:
                return earlier.project
            return next((found for found in map(directory.project, user.roles) if found), None)
        if not isinstance(scope, dict) or "project" not in scope:
            raise exception.Unauthorized("Tokens of this identity service are scoped to projects only.")
        asked = scope["project"]
        found = directory.project(asked.get("id") or asked.get("name"))
        if found is None or not _is_default(asked.get("domain")) or not user.roles_on(found.id):
            raise exception.Unauthorized()
        return found

    @takes(query=_NO_CATALOG)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """Look into a token."""
        query = req.query()
        text, token = self._subject(req)
        self._answer(req, resp, text, token, "nocatalog" not in query)

    on_head = on_get

    def on_delete(self, req: Request, resp: falcon.Response) -> None:
        """Revoke a token."""
        self._tokens.revoke(self._subject(req)[1])
        resp.status = falcon.HTTP_204

    def _subject(self, req: Request) -> tuple[str, Token]:
        """Return the token that is asked about; other people's are the administrator's business."""
        text = req.get_header("X-Subject-Token") or ""
        try:
            token = self._tokens.verify(text)
        except exception.Unauthorized:
            raise exception.NotFound("Failed to validate token")
        if token.user.id != req.nova.user_id:
            policy.authorize(req.nova, "identity:validate_token")
        return text, token

    def _answer(self, req: Request, resp: falcon.Response, text: str, token: Token, with_catalog: bool) -> None:
        resp.set_header("X-Subject-Token", text)
        resp.set_header("Vary", "X-Auth-Token")
        resp.media = {"token": views.token(req, token, self._cloud, with_catalog)}


def _is_default(domain: dict[str, str] | None) -> bool:
    given = {**(domain or {})}
    return given.get("id", "default") == "default" and given.get("name", "Default").lower() == "default"


class AuthCatalog(_Resource):
    """/v3/auth/catalog"""

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """Show the catalogue of services."""
        resp.media = views.listed(req, "catalog", views.catalog(req, self._cloud))


class AuthProjects(_Resource):
    """/v3/auth/projects"""

    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List the projects that the caller can have tokens for."""
        _show_projects(req, resp, self._tokens, req.user_id)


class UserProjects(_Resource):
    """/v3/users/{user_id}/projects"""

    def on_get(self, req: Request, resp: falcon.Response, user_id: str) -> None:
        """List a user's projects."""
        if user_id != req.user_id:
            policy.authorize(req.nova, "identity:list_projects")
        _show_projects(req, resp, self._tokens, user_id)


def _show_projects(req: Request, resp: falcon.Response, tokens: Tokens, user_id: str) -> None:
    directory = tokens.directory
    user = directory.user(user_id)
    if user is None:
        raise exception.NotFound(f"Could not find user: {user_id}.")
    found = [project for project in directory.projects if user.roles_on(project.id)]
    resp.media = views.listed(req, "projects", [views.project(req, project) for project in found])


class Projects(_Resource):
    """/v3/projects"""

    @takes(query=_FILTERS)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List projects."""
        policy.authorize(req.nova, "identity:list_projects")
        shown = [views.project(req, project) for project in self._tokens.directory.projects]
        resp.media = views.listed(req, "projects", _filtered(req, shown))


def _filtered(req: Request, shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    query = req.query()
    for name in ("name", "domain_id"):
        if name in query:
            shown = [one for one in shown if one[name] == query[name][0]]
    return shown


class ProjectResource(_Resource):
    """/v3/projects/{project_id}"""

    def on_get(self, req: Request, resp: falcon.Response, project_id: str) -> None:
        """Show a project."""
        if project_id != req.nova.project_id:
            policy.authorize(req.nova, "identity:list_projects")
        project = next((p for p in self._tokens.directory.projects if p.id == project_id), None)
        if project is None:
            raise exception.NotFound(f"Could not find project: {project_id}.")
        resp.media = {"project": views.project(req, project)}


class Users(_Resource):
    """/v3/users"""

    @takes(query=_FILTERS)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List users."""
        policy.authorize(req.nova, "identity:list_users")
        shown = [views.user(req, user) for user in self._tokens.directory.users]
        resp.media = views.listed(req, "users", _filtered(req, shown))


class UserResource(_Resource):
    """/v3/users/{user_id}"""

    def on_get(self, req: Request, resp: falcon.Response, user_id: str) -> None:
        """Show a user."""
        if user_id != req.nova.user_id:
            policy.authorize(req.nova, "identity:list_users")
        user = next((u for u in self._tokens.directory.users if u.id == user_id), None)
        if user is None:
            raise exception.NotFound(f"Could not find user: {user_id}.")
        resp.media = {"user": views.user(req, user)}


class Roles(_Resource):
    """/v3/roles"""

    @takes(query=_FILTERS)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List roles."""
        policy.authorize(req.nova, "identity:list_roles")
        shown = [views.role_detail(req, name) for name in identity_file.ROLES]
        resp.media = views.listed(req, "roles", _filtered(req, shown))


class Domains(_Resource):
    """/v3/domains"""

    @takes(query=_FILTERS)
    def on_get(self, req: Request, resp: falcon.Response) -> None:
        """List domains: the only one."""
        shown = [{**views.domain(req), "domain_id": None}]
        resp.media = views.listed(req, "domains", _filtered(req, shown))


class DomainResource(_Resource):
    """/v3/domains/{domain_id}"""

    def on_get(self, req: Request, resp: falcon.Response, domain_id: str) -> None:
        """Show the domain."""
        if domain_id != views.DOMAIN["id"]:
            raise exception.NotFound(f"Could not find domain: {domain_id}.")
        resp.media = {"domain": views.domain(req)}


#: Paths as they are mounted, below nothing; each class takes (Tokens, Cloud).
ROUTES: list[tuple[str, type[_Resource]]] = [
    ("/v3", Version),
    ("/v3/auth/tokens", AuthTokens),
    ("/v3/auth/catalog", AuthCatalog),
    ("/v3/auth/projects", AuthProjects),
    ("/v3/projects", Projects),
    ("/v3/projects/{project_id}", ProjectResource),
    ("/v3/users", Users),
    ("/v3/users/{user_id}", UserResource),
    ("/v3/users/{user_id}/projects", UserProjects),
    ("/v3/roles", Roles),
    ("/v3/domains", Domains),
    ("/v3/domains/{domain_id}", DomainResource),
]

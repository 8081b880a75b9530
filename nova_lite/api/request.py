# SPDX-License-Identifier: Apache-2.0
"""The request as resource classes see it: who asks, at which microversion, and a body that has been checked.

Middleware (app.py, auth.py) fills in ``nova``, ``version`` and the rest before a resource is called.
"""

from __future__ import annotations

import functools
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import falcon
import msgspec

from nova_lite import exception
from nova_lite.api import microversion, validation
from nova_lite.api.microversion import Version, Versioned
from nova_lite.api.validation import Schema
from nova_lite.context import RequestContext

Method = TypeVar("Method", bound=Callable[..., None])

#: From here on query parameters that nothing knows are refused everywhere; before, where 2.75 says so.
STRICT_QUERIES = Version(2, 102)

_decode = msgspec.json.Decoder().decode
# PostgreSQL does not, and nothing that is refused on one database should be taken on another.
_NO_NUL = "it has the character NUL in it, which not every database can keep."


@dataclass(frozen=True, slots=True)
class Takes:
    """What a resource's method reads of its requests, and in which form it answers; openapi.py tells of it."""

    body: Schema | Versioned[Schema] | None = None
    query: Schema | Versioned[Schema] | None = None
    media_type: str = "application/json"
    gives: str = "application/json"


class Request(falcon.Request):
    """falcon's request, with what nova_lite adds."""

    #: Who asks; unset (an AttributeError) where no token is needed.
    nova: RequestContext
    request_id: str = ""
    version: Version = microversion.MINIMUM
    #: The scheme, host and port under which clients reach the api, without a slash at the end.
    public_url: str = ""
    #: "/<project id>" where the request's path had one, for links that stay in style.
    project_segment: str = ""
    max_body: int = 1 << 20
    #: Whether whoever answers has looked at the query string.
    query_is_read: bool = False
    started: float = 0.0
    #: What the method that answers has said that it reads (``takes``).
    takes: Takes = Takes()

    @property
    def loggable_path(self) -> str:
        """The path without what would break a line of the log, or begin a new one."""
        return urllib.parse.quote(self.path[:1000], safe="/:@,")

    @property
    def project_id(self) -> str:
        """The project that the caller's token is for; where a token is needed at all, it has one."""
        if self.nova.project_id is None:
            raise exception.Forbidden("The token is not scoped to a project.")
        return str(self.nova.project_id)

    @property
    def user_id(self) -> str:
        """The caller's id."""
        return str(self.nova.user_id)

    def json_body(self) -> dict[str, Any]:
        """Return the body, an object that the schema of ``takes`` accepts at the request's version.

        :raises BodyTooLarge: it has more than [api]max_request_body bytes.
        :raises BadRequest: it is not JSON, or not what the schema asks for.
        """
        body = self.json_value()
        if not isinstance(body, dict):
            raise exception.BadRequest("The request body must be a JSON object.")
        validation.validate(body, _declared("body", self.takes.body), self.version)
        return body

    def json_value(self, media_type: str = "application/json") -> Any:
        """Return the body as any JSON value, not validated.

        :raises BadRequest: it is not JSON, or comes as another media type; none at all will do.
        """
        given = (self.content_type or media_type).split(";", 1)[0].strip().lower()
        if given != media_type:
            raise exception.BadRequest(f"Unsupported Content-Type {given[:100]}: send {media_type}.")
        text = self.raw_body(self.max_body)
        try:
            value = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise exception.BadRequest("Malformed request body: it is not valid JSON in UTF-8.")
        if b"\\u0000" in text and _has_nul(value):
            raise exception.BadRequest(f"Malformed request body: {_NO_NUL}")
        return value

    def raw_body(self, limit: int) -> bytes:
        """Return the body's bytes.

        :raises BodyTooLarge: there are more than limit.
        """
        if (self.content_length or 0) > limit:
            raise exception.BodyTooLarge(limit=limit)
        data: bytes = self.body_stream().read(limit + 1)
        if len(data) > limit:
            raise exception.BodyTooLarge(limit=limit)
        return data

    def body_stream(self) -> Any:
        """Return the body as a file, whether its length is known beforehand or it comes in chunks."""
        if self.content_length is None and "chunked" in self.get_header("Transfer-Encoding", default="").lower():
            return self.stream
        return self.bounded_stream

    def query(self) -> dict[str, list[str]]:
        """Return the query string's parameters, each with all its values, checked against the schema of ``takes``.

        :raises BadRequest: it is not UTF-8, or not what the schema asks for.
        """
        schema = _declared("query", self.takes.query)
        parameters: dict[str, list[str]] = {}
        try:
            pairs = urllib.parse.parse_qsl(
                self.query_string, keep_blank_values=True, errors="strict", max_num_fields=1000
            )
        except ValueError:
            raise exception.BadRequest("Malformed query string: it is not valid UTF-8, or has too many fields.")
        if any("\0" in text for pair in pairs for text in pair):
            raise exception.BadRequest(f"Malformed query string: {_NO_NUL}")
        for key, value in pairs:
            parameters.setdefault(key, []).append(value)
        self.query_is_read = True
        validation.validate(parameters, schema, self.version, "query parameters")
        if self.version >= STRICT_QUERIES:
            validation.refuse_unknown(parameters, schema, self.version)
        return parameters


def _has_nul(value: Any) -> bool:
    rest = [value]
    while rest:
        value = rest.pop()
        if isinstance(value, str) and "\0" in value:
            return True
        if isinstance(value, dict):
            rest += [*value, *value.values()]
        elif isinstance(value, list):
            rest += value
    return False


def _declared(what: str, schema: Schema | Versioned[Schema] | None) -> Schema | Versioned[Schema]:
    if schema is None:
        raise TypeError(f"The method reads a {what} that it does not declare: give it @takes({what}=...).")
    return schema


def takes(
    body: Schema | Versioned[Schema] | None = None,
    query: Schema | Versioned[Schema] | None = None,
    *,
    media_type: str = "application/json",
    gives: str = "application/json",
) -> Callable[[Method], Method]:
    """Declare what a resource's method reads of a request: it gets no more than that, and the description says so.

    :param body: what ``json_body`` accepts; {} stands for what the method reads by itself.
    :param query: what ``query`` accepts.
    :param media_type: the body's.
    :param gives: the answer's, when all goes well.
    """
    declared = Takes(body, query, media_type, gives)

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def declaring(self: Any, req: Request, resp: falcon.Response, **ids: str) -> None:
            req.takes = declared
            method(self, req, resp, **ids)

        declaring.takes = declared  # type: ignore[attr-defined]
        return declaring  # type: ignore[return-value]  # as in _bounded()

    return decorate


def since(text: str) -> Callable[[Method], Method]:
    """Let a resource's method answer 404 below a microversion."""
    return _bounded(Version.parse(text), microversion.MAXIMUM)


def until(text: str) -> Callable[[Method], Method]:
    """Let a resource's method answer 404 above a microversion."""
    return _bounded(microversion.MINIMUM, Version.parse(text))


def serves(method: Any, version: Version) -> bool:
    """Tell whether a resource's method serves a microversion, by its ``since`` and ``until``."""
    return all(first <= version <= last for first, last in getattr(method, "bounds", ()))


def _bounded(first: Version, last: Version) -> Callable[[Method], Method]:
    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def checked(self: Any, req: Request, resp: falcon.Response, **ids: str) -> None:
            if not first <= req.version <= last:
                raise exception.NotFound(f"API version {req.version} is not supported on this method.")
            method(self, req, resp, **ids)

        checked.bounds = (*getattr(method, "bounds", ()), (first, last))  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]  # wraps() keeps what Method promises; mypy cannot see it

    return decorate

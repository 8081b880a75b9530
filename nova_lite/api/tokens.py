# SPDX-License-Identifier: Apache-2.0
"""Tokens and passwords of the embedded identity service.

A token is a signed claim (JWT, HS256) that somebody logged in as a user, for a project, until a time. What the user
may do is looked up when it is used, so that a user who is removed has no time left.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import os
import secrets
import threading
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass

import bcrypt
import jwt
from oslo_config import cfg
from oslo_log import log

from nova_lite import exception, identity_file
from nova_lite.identity_file import Directory, Project, User

LOG = log.getLogger(__name__)

_ALGORITHM = "HS256"
# Verified passwords and tokens that are remembered.
_REMEMBERED = 1024
# What the password of a user who does not exist is compared with: it takes as long, and matches nothing.
_NOBODY = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt())


@dataclass(frozen=True, slots=True)
class Token:
    """A valid token. project is None while it is not scoped; roles include those that are implied."""

    id: str
    user: User
    project: Project | None
    roles: tuple[str, ...]
    methods: tuple[str, ...]
    issued_at: datetime.datetime
    expires_at: datetime.datetime


@dataclass(frozen=True, slots=True)
class _Claims:
    id: str
    user: str
    project: str | None
    methods: tuple[str, ...]
    issued_at: float
    expires_at: float


class Tokens:
    """Issues tokens and verifies them."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._lifetime: int = conf.auth.token_lifetime
        self._key = _key(conf.auth.token_key_file)
        self._users = identity_file.Watched(conf.auth.users_file)
        self._claims: OrderedDict[bytes, _Claims] = OrderedDict()
        self._passwords: OrderedDict[str, bytes] = OrderedDict()
        self._revoked = Revocations(f"{conf.auth.users_file}.revoked")
        self._lock = threading.Lock()

    @property
    def directory(self) -> Directory:
        return self._users.get()

    def authenticate(self, user: str, password: str) -> User:
        """Return the user with this name or id.

        :raises Unauthorized: there is none, or the password is another; nothing tells which.
        """
        known = self.directory.user(user)
        if not self._matches(known, password) or known is None or not known.enabled:
            LOG.warning("login refused user=%.64r", user)
            raise exception.Unauthorized()
        return known

    def _matches(self, user: User | None, password: str) -> bool:
        """bcrypt is slow on purpose; a password that was right once is recognised by a keyed hash of it."""
        given = password.encode("utf-8", "replace")
        if len(given) > identity_file.MAX_PASSWORD_BYTES or b"\x00" in given:
            given = b""
        stored = user.password_hash if user else _NOBODY.decode()
        mark = hmac.digest(self._key, stored.encode() + b"\x00" + given, "sha256")
        if user and hmac.compare_digest(self._passwords.get(user.id, b""), mark):
            return True
        try:
            if not bcrypt.checkpw(given, stored.encode()) or user is None:
                return False
        except ValueError:
            LOG.error("the password hash of a user is not one of bcrypt's user=%s", user.name if user else None)
            return False
        with self._lock:
            self._passwords[user.id] = mark
            while len(self._passwords) > _REMEMBERED:
                self._passwords.popitem(last=False)
        return True

    def issue(self, user: User, project: Project | None, methods: tuple[str, ...]) -> tuple[str, Token]:
        """Return a new token, as text and as what it says.

        :raises Unauthorized: the user has no role on the project.
        """
        now = int(time.time())
        claims = _Claims(uuid.uuid4().hex, user.id, project.id if project else None, methods, now, now + self._lifetime)
        payload = {"jti": claims.id, "sub": user.id, "iat": now, "exp": claims.expires_at, "methods": list(methods)}
        if project:
            payload["project"] = project.id
        text = jwt.encode(payload, self._key, algorithm=_ALGORITHM)
        return text, self._token(claims)

    def verify(self, text: str) -> Token:
        """Return what a token says, as its user stands now.

        :raises Unauthorized: it is not one of ours, is too old or revoked, or its user lost the project.
        """
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        claims = self._claims.get(digest)
        if claims is None:
            claims = self._decode(text)
            with self._lock:
                self._claims[digest] = claims
                while len(self._claims) > _REMEMBERED:
                    self._claims.popitem(last=False)
        if claims.expires_at <= time.time() or self._revoked.has(claims.id):
            raise exception.Unauthorized()
        return self._token(claims)

    def revoke(self, token: Token) -> None:
        """Make a token worthless from now on, in every process that shares the users file."""
        self._revoked.add(token.id, token.expires_at.timestamp())

    def _decode(self, text: str) -> _Claims:
        try:
            found = jwt.decode(
                text, self._key, algorithms=[_ALGORITHM], options={"require": ["jti", "sub", "iat", "exp"]}
            )
        except (jwt.InvalidTokenError, UnicodeError, ValueError):
            raise exception.Unauthorized()
        return _Claims(
            found["jti"], found["sub"], found.get("project"), tuple(found["methods"]), found["iat"], found["exp"]
        )

    def _token(self, claims: _Claims) -> Token:
        directory = self.directory
        user = next((u for u in directory.users if u.id == claims.user), None)
        if user is None or not user.enabled:
            raise exception.Unauthorized()
        project = next((p for p in directory.projects if p.id == claims.project), None)
        roles = tuple(user.roles_on(project.id)) if project else ()
        if claims.project and not roles:
            raise exception.Unauthorized()
        return Token(claims.id, user, project, roles, claims.methods, _time(claims.issued_at), _time(claims.expires_at))


class Revocations:
    """The ids of revoked tokens, in a file beside the users file: a line each, with the time until which it matters."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._ids: dict[str, float] = {}

    def has(self, token_id: str) -> bool:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return False
        seen = (status.st_mtime_ns, status.st_ino)
        if seen != self._seen:
            self._ids = self._read()
            self._seen = seen
        return token_id in self._ids

    def add(self, token_id: str, until: float) -> None:
        """Add an id, and drop those of tokens that have expired by themselves."""
        with identity_file.editing(self._path):
            now = time.time()
            kept = {**{i: t for i, t in self._read().items() if t > now}, token_id: until}
            identity_file.replace(self._path, "".join(f"{i} {t:.0f}\n" for i, t in kept.items()))

    def _read(self) -> dict[str, float]:
        try:
            with open(self._path, encoding="ascii") as file:
                lines = [line.split() for line in file]
        except FileNotFoundError:
            return {}
        return {line[0]: float(line[1]) for line in lines if len(line) == 2}


def _time(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def _key(path: str) -> bytes:
    """Read the key that signs tokens, made on first use; of several processes that make it at once, one does."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    if not os.path.exists(path):
        temporary = f"{path}.{uuid.uuid4().hex}"
        with open(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32))
        try:
            os.link(temporary, path)
        except FileExistsError:
            LOG.debug("another process made the token key first path=%s", path)
        finally:
            os.unlink(temporary)
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise exception.NovaLiteError(f"The token key {path} can be read by others: chmod 600 it.")
        key = file.read().strip()
    if len(key) < 32:
        raise exception.NovaLiteError(f"The token key {path} is shorter than 32 bytes: remove it to have one made.")
    return key

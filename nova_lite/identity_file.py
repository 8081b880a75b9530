# SPDX-License-Identifier: Apache-2.0
"""The users file of the embedded identity service: projects, and users with bcrypt hashes and their roles.

``nova-lite-manage user`` edits it, the api reads it (again whenever it changes). It is YAML that nobody but its owner
may read, and it is replaced as a whole: a reader sees the old file or the new one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import bcrypt
import yaml
from oslo_log import log

from nova_lite import exception

LOG = log.getLogger(__name__)

ROLES = ("admin", "member", "reader")
# A role brings those after it.
_IMPLIED = {"admin": ("admin", "member", "reader"), "member": ("member", "reader"), "reader": ("reader",)}
# bcrypt looks at no more.
MAX_PASSWORD_BYTES = 72
_NAME = re.compile(r"[^\s/\x00-\x1f]{1,64}")


class UnusableFile(exception.NovaLiteError):
    """The users file must not, or cannot be used; the message, which names it, is for the operator."""


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class User:
    """roles holds the roles that were given, by project id."""

    id: str
    name: str
    password_hash: str
    roles: dict[str, tuple[str, ...]] = field(default_factory=dict)
    enabled: bool = True

    def roles_on(self, project_id: str) -> list[str]:
        """Return the user's roles on a project with those that they imply."""
        return sorted({implied for role in self.roles.get(project_id, ()) for implied in _IMPLIED.get(role, (role,))})


@dataclass(frozen=True)
class Directory:
    """What the file says."""

    projects: tuple[Project, ...] = ()
    users: tuple[User, ...] = ()

    def project(self, id_or_name: str) -> Project | None:
        return next((p for p in self.projects if id_or_name in (p.id, p.name)), None)

    def user(self, id_or_name: str) -> User | None:
        return next((u for u in self.users if id_or_name in (u.id, u.name)), None)


def load(path: str) -> Directory:
    """Read the file; one that is not there has nobody in it.

    :raises UnusableFile: everybody can read it, or it is not a users file.
    """
    try:
        with open(path, encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & (stat.S_IROTH | stat.S_IWOTH):
                raise UnusableFile(f"The users file {path} can be read by everybody: chmod 600 it.")
            content = yaml.safe_load(file) or {}
    except FileNotFoundError:
        return Directory()
    try:
        return Directory(
            projects=tuple(Project(str(p["id"]), str(p["name"])) for p in content.get("projects", ())),
            users=tuple(_user(u) for u in content.get("users", ())),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnusableFile(f"The users file {path} is not understood: {error!r}")


def _user(entry: dict[str, Any]) -> User:
    roles = {str(project): tuple(str(r) for r in given) for project, given in (entry.get("roles") or {}).items()}
    return User(
        str(entry["id"]), str(entry["name"]), str(entry["password_hash"]), roles, bool(entry.get("enabled", True))
    )


def add_user(path: str, name: str, password: str, project: str, roles: tuple[str, ...] = ("member",)) -> User:
    """Add a user, or change the password and roles of one; a project that is not there yet is made.

    :raises BadRequest: a name, a role or the password cannot be used.
    """
    _check(name, password, project, roles)
    password_hash = bcrypt.hashpw(password.encode(), bcrypt.gensalt()).decode()
    with editing(path):
        old = load(path)
        where = old.project(project)
        projects = old.projects
        if where is None:
            where = Project(uuid.uuid4().hex, project)
            projects = (*projects, where)
        known = old.user(name)
        user = User(
            known.id if known else uuid.uuid4().hex,
            known.name if known else name,
            password_hash,
            {**(known.roles if known else {}), where.id: roles},
        )
        others = tuple(u for u in old.users if u.id != user.id)
        _save(path, Directory(projects, (*others, user)))
    return user


def remove_user(path: str, name: str) -> None:
    """Remove a user by name or id; their tokens are worth nothing from then on.

    :raises NotFound: there is no such user.
    """
    with editing(path):
        old = load(path)
        user = old.user(name)
        if user is None:
            raise exception.NotFound(f"There is no user {name}.")
        _save(path, Directory(old.projects, tuple(u for u in old.users if u is not user)))


def _check(name: str, password: str, project: str, roles: tuple[str, ...]) -> None:
    if not _NAME.fullmatch(name) or not _NAME.fullmatch(project):
        raise exception.BadRequest("Names of users and projects have 1 to 64 characters, no spaces and no slashes.")
    if not roles or set(roles) - set(ROLES):
        raise exception.BadRequest(f"Roles are {', '.join(ROLES)}.")
    if not password or "\x00" in password or len(password.encode()) > MAX_PASSWORD_BYTES:
        raise exception.BadRequest(f"A password has 1 to {MAX_PASSWORD_BYTES} bytes, none of them zero.")


@contextlib.contextmanager
def editing(path: str) -> Iterator[None]:
    """Keep others from replacing the file at the same time."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _save(path: str, directory: Directory) -> None:
    content = {
        "projects": [{"id": p.id, "name": p.name} for p in directory.projects],
        "users": [
            {
                "id": u.id,
                "name": u.name,
                "password_hash": u.password_hash,
                "enabled": u.enabled,
                "roles": {project: list(roles) for project, roles in u.roles.items()},
            }
            for u in directory.users
        ],
    }
    replace(path, yaml.safe_dump(content, sort_keys=False))


def replace(path: str, text: str) -> None:
    """Write a file that only its owner may read, as a whole or not at all; within ``editing``."""
    temporary = f"{path}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    with open(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


class Watched:
    """The file as it is now: read again when it has changed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._directory = Directory()

    def get(self) -> Directory:
        """Return what the file says.

        :raises Unauthorized: it cannot be used; why is for the log.
        """
        seen = self._state()
        if seen != self._seen:
            with self._lock:
                if seen != self._seen:
                    self._read(seen)
        return self._directory

    def _read(self, seen: tuple[int, int, int]) -> None:
        try:
            self._directory = load(self._path)
        except (UnusableFile, OSError, ValueError, yaml.YAMLError) as error:
            LOG.error("nobody can log in reason=%s", error)
            raise exception.Unauthorized()
        self._seen = seen

    def _state(self) -> tuple[int, int, int]:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return (0, 0, 0)
        return (status.st_mtime_ns, status.st_ino, status.st_mode)

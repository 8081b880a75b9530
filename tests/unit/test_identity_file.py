# SPDX-License-Identifier: Apache-2.0
"""The users file: written as a whole, readable for its owner, and refused otherwise."""

from __future__ import annotations

import stat
from pathlib import Path

import bcrypt
import pytest

from nova_lite import exception, identity_file


@pytest.fixture(autouse=True)
def cheap_bcrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    salt = bcrypt.gensalt
    monkeypatch.setattr(bcrypt, "gensalt", lambda: salt(4))


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "new" / "users.yaml")


def test_add_and_load(path: str) -> None:
    identity_file.add_user(path, "alice", "secret", "blue", ("admin",))
    identity_file.add_user(path, "bob", "other", "blue")

    found = identity_file.load(path)

    assert [user.name for user in found.users] == ["alice", "bob"]
    assert [project.name for project in found.projects] == ["blue"]
    alice = found.user("alice")
    assert alice is not None
    assert alice.roles_on(found.projects[0].id) == ["admin", "member", "reader"]
    assert bcrypt.checkpw(b"secret", alice.password_hash.encode())
    assert "secret" not in Path(path).read_text()


def test_only_the_owner_reads_it(path: str) -> None:
    identity_file.add_user(path, "alice", "secret", "blue")

    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    Path(path).chmod(0o644)
    with pytest.raises(identity_file.UnusableFile, match="chmod 600"):
        identity_file.load(path)


def test_adding_again_changes_password_and_adds_projects(path: str) -> None:
    first = identity_file.add_user(path, "alice", "secret", "blue")

    second = identity_file.add_user(path, "alice", "new", "red", ("reader",))

    assert second.id == first.id
    assert len(second.roles) == 2
    assert len(identity_file.load(path).users) == 1


def test_remove(path: str) -> None:
    identity_file.add_user(path, "alice", "secret", "blue")

    identity_file.remove_user(path, "alice")

    assert identity_file.load(path).users == ()
    with pytest.raises(exception.NotFound):
        identity_file.remove_user(path, "alice")


@pytest.mark.parametrize(
    ("name", "password", "project", "roles"),
    [
        ("", "x", "p", ("member",)),
        ("a b", "x", "p", ("member",)),
        ("a\n", "x", "p", ("member",)),
        ("a", "", "p", ("member",)),
        ("a", "x" * 73, "p", ("member",)),
        ("a", "\x00", "p", ("member",)),
        ("a", "x", "p/q", ("member",)),
        ("a", "x", "p", ()),
        ("a", "x", "p", ("king",)),
    ],
)
def test_bad_users(path: str, name: str, password: str, project: str, roles: tuple[str, ...]) -> None:
    with pytest.raises(exception.BadRequest):
        identity_file.add_user(path, name, password, project, roles)

    assert not Path(path).exists()


@pytest.mark.parametrize("text", ["users: [1]", "users: {a: b}", "- 1", "users: [{id: 1}]"])
def test_files_that_are_not_understood(tmp_path: Path, text: str) -> None:
    path = tmp_path / "users.yaml"
    path.write_text(text)
    path.chmod(0o600)

    with pytest.raises(identity_file.UnusableFile):
        identity_file.load(str(path))


def test_watched_file_is_read_again_when_it_changes(path: str) -> None:
    watched = identity_file.Watched(path)
    assert watched.get().users == ()

    identity_file.add_user(path, "alice", "secret", "blue")
    assert watched.get() is watched.get()
    assert len(watched.get().users) == 1

    Path(path).write_text("{")
    for _ in range(2):
        with pytest.raises(exception.Unauthorized):
            watched.get()

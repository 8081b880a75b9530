# SPDX-License-Identifier: Apache-2.0
"""Who may know whom: the map of the architecture page, held against every import of the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "nova_lite"


@dataclass(frozen=True)
class Import:
    """One import: the module that does it, and what it names, both with all dots."""

    module: str
    line: int
    target: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def _modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_of(path: Path) -> Iterator[Import]:
    module = _name(path)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (Import(module, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively"
            yield from (Import(module, node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


IMPORTS = [found for path in _modules() for found in _imports_of(path)]


def _is_in(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _all(*names: str) -> tuple[str, ...]:
    return tuple(f"nova_lite.{name}" for name in names)


def _offenders(of: tuple[str, ...], forbidden: tuple[str, ...], allowed: tuple[str, ...] = ()) -> list[str]:
    return [
        str(found)
        for found in IMPORTS
        if _is_in(found.module, *of) and _is_in(found.target, *forbidden) and not _is_in(found.target, *allowed)
    ]


def test_the_map_sees_the_package() -> None:
    assert Import("nova_lite.rpc", 1, "oslo_messaging") in [Import(i.module, 1, i.target) for i in IMPORTS]


PROCESSES = ("api", "conductor", "scheduler", "compute")


@pytest.mark.parametrize("process", PROCESSES)
def test_processes_know_only_each_others_rpcapi(process: str) -> None:
    others = [other for other in PROCESSES if other != process]
    allowed = _all(*(f"{other}.rpcapi" for other in others))
    assert _offenders(_all(process), _all(*others), allowed) == []


@pytest.mark.parametrize("package", ["virt", "image", "network"])
def test_drivers_know_neither_bus_nor_database(package: str) -> None:
    forbidden = (*_all("rpc", "db", *PROCESSES), "oslo_messaging", "sqlalchemy", "oslo_db")
    assert _offenders(_all(package), forbidden) == []


def test_computes_have_no_database() -> None:
    assert _offenders(_all("compute"), (*_all("db"), "sqlalchemy", "oslo_db")) == []


def test_values_and_errors_know_nobody() -> None:
    assert _offenders(_all("objects", "exception"), ("nova_lite",), _all("objects")) == []


def test_options_know_nobody() -> None:
    assert _offenders(_all("conf"), ("nova_lite",), ("nova_lite.conf", "nova_lite.__version__")) == []


def test_the_database_knows_values_only() -> None:
    assert _offenders(_all("db"), ("nova_lite",), _all("db", "objects", "conf", "retry", "exception")) == []


def test_nothing_imports_the_entry_points() -> None:
    foreign = [found for found in IMPORTS if not _is_in(found.module, "nova_lite.cmd")]
    assert [str(found) for found in foreign if _is_in(found.target, "nova_lite.cmd")] == []


def test_only_the_manage_command_imports_its_nouns() -> None:
    foreign = [found for found in IMPORTS if not _is_in(found.module, *_all("manage", "cmd.manage"))]
    assert [str(found) for found in foreign if _is_in(found.target, "nova_lite.manage")] == []


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("oslo_messaging", _all("rpc")),
        ("alembic", _all("db")),
        ("libvirt", _all("virt.libvirt")),
        ("falcon", _all("api")),
        ("eventlet", ()),
        ("asyncio", ()),
    ],
)
def test_a_library_has_one_home(library: str, homes: tuple[str, ...]) -> None:
    foreign = [found for found in IMPORTS if not _is_in(found.module, *homes)]
    assert [str(found) for found in foreign if _is_in(found.target, library)] == []


def test_sql_lives_in_db_alone() -> None:
    """Others hand a unit's connection on, and so may name its type; they build no statement and catch no error."""
    uses = [
        f"{_name(path)}:{node.lineno} uses {ast.unparse(node)}"
        for path in _modules()
        if not _is_in(_name(path), *_all("db"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("sa", "sqlalchemy")
    ]
    assert [use for use in uses if not use.endswith(".Connection")] == []
    foreign = [found for found in IMPORTS if not _is_in(found.module, *_all("db"))]
    allowed = ("sqlalchemy", "sqlalchemy.Connection")
    assert [str(i) for i in foreign if _is_in(i.target, "sqlalchemy") and i.target not in allowed] == []


@pytest.mark.parametrize("path", _modules(), ids=_name)
def test_a_module_begins_with_its_licence_and_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    assert text.splitlines()[0] == "# SPDX-License-Identifier: Apache-2.0"
    statements = ast.parse(text).body
    assert not statements or ast.get_docstring(ast.parse(text)), "no docstring"


def test_no_module_is_a_catch_all() -> None:
    names = {"utils", "util", "helpers", "helper", "common", "misc", "base"}
    assert [str(path) for path in PACKAGE.rglob("*") if path.stem in names] == []

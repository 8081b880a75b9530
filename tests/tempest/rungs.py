# SPDX-License-Identifier: Apache-2.0
"""What is expected of Tempest: the tests of each rung, by name, and those that are known to fail, each with its reason.

A rung is a file of names in rungs/, ``#`` begins a comment. Known failures are in known_failures.yaml, by the
hypervisor that they fail with, or "any", and by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.tempest.stock import Result

_HERE = Path(__file__).parent

PASSED, FAILED, SKIPPED = "success", "fail", "skip"
_NOT_RUN = "not run"


@dataclass(frozen=True)
class Rung:
    """A part of the API, and the tests that ask for it."""

    name: str
    about: str
    tests: tuple[str, ...]


def load() -> list[Rung]:
    """Return all rungs, the lowest first."""
    return [_read(path) for path in sorted((_HERE / "rungs").glob("*.txt"))]


def _read(path: Path) -> Rung:
    lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    about = " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))
    return Rung(path.stem, about, tuple(line for line in lines if not line.startswith("#")))


def known_failures(hypervisor: str) -> dict[str, str]:
    """Return the tests that are known to fail with a hypervisor, with the reason of each."""
    by_hypervisor: dict[str, dict[str, str]] = yaml.safe_load((_HERE / "known_failures.yaml").read_text()) or {}
    return {**(by_hypervisor.get("any") or {}), **(by_hypervisor.get(hypervisor) or {})}


@dataclass
class Account:
    """How the tests of a rung ended, against what is expected of them."""

    rung: Rung
    passed: list[str] = field(default_factory=list)
    #: test -> what it said
    regressions: dict[str, str] = field(default_factory=dict)
    #: test -> why it is known to fail
    known: dict[str, str] = field(default_factory=dict)
    #: Known to fail, and passed: the entry has to go.
    mended: list[str] = field(default_factory=list)


def account(rung: Rung, results: Iterable[Result], known: Mapping[str, str]) -> Account:
    """Sort a rung's tests by how they ended.

    A test that was skipped or not run at all has not passed. What Tempest says of the set-up of a class holds for all
    of the class's tests that it then leaves out.
    """
    ended = {result.test: result for result in results}
    found = Account(rung)
    for test in rung.tests:
        result = ended.get(test) or _of_class(test, ended)
        if result.status == PASSED:
            (found.mended if test in known else found.passed).append(test)
        elif test in known:
            found.known[test] = known[test]
        else:
            found.regressions[test] = f"{result.status}: {result.words}".strip()
    return found


def _of_class(test: str, ended: Mapping[str, Result]) -> Result:
    found = ended.get(f"setUpClass ({test.rpartition('.')[0]})")
    if found is None or found.status == PASSED:
        return Result(test, _NOT_RUN, 0.0, "Tempest has no such test, or ended before it")
    return found

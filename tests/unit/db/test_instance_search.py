# SPDX-License-Identifier: Apache-2.0
"""The names that users search by, as SQL for both databases."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, sqlite

from nova_lite import exception
from nova_lite.db.instance_search import Filters, _conditions


def _sql(pattern: str, dialect: sa.Dialect | None = None) -> tuple[str, list[object]]:
    (condition,) = _conditions(Filters(patterns={"name": pattern}, deleted=None))
    compiled = condition.compile(dialect=dialect or sqlite.dialect())
    return str(compiled), list(compiled.params.values())


@pytest.mark.parametrize(
    ("pattern", "like"),
    [
        ("web", "%web%"),
        ("^web", "web%"),
        ("web$", "%web"),
        ("^web$", "web"),
        ("a.b", "%a_b%"),
        ("^a.*b.*$", "a%b%"),
        ("a.*.*b", "%a%b%"),
        ("a.+", "%a_%"),
        ("a\\.b", "%a.b%"),
        ("100%_", "%100\\%\\_%"),
        ("a'b", "%a'b%"),
        ("é", "%é%"),
    ],
)
def test_simple_patterns_become_like(pattern: str, like: str) -> None:
    sql, parameters = _sql(pattern)

    assert "lower(instances.name) LIKE lower(?)" in sql
    assert parameters == [like]


@pytest.mark.parametrize("pattern", ["^web[0-9]+$", "a*", "\\d", "[^a]x?"])
def test_other_patterns_become_regular_expressions_with_a_bound_value(pattern: str) -> None:
    assert _sql(pattern)[1] == [f"(?i){pattern}"]
    assert "REGEXP" in _sql(pattern, mysql.dialect())[0]


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "a|b", "a{9}", "[a", "a]", "*a", "a**", "\\", "\\b", "[[:alpha:]]", "a*b*c*d*e*", "[z-a]"]
)
def test_patterns_that_could_work_for_long_are_refused(pattern: str) -> None:
    with pytest.raises(exception.BadRequest, match="Invalid pattern"):
        _sql(pattern)

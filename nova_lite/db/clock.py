# SPDX-License-Identifier: Apache-2.0
"""The database's clock, the only one that is compared between processes.

``now()`` is an SQL expression: UTC, microseconds, taken when its statement runs. ``now(+30)`` is half a minute later,
``later("lease")`` as many microseconds as the statement's parameter of that name says.
Every column of a shared time is filled with it and judged by it.
"""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import functions

Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


class now(functions.FunctionElement[datetime.datetime]):  # noqa: N801 - reads as the SQL function that it is
    """The database's time now, plus an offset in seconds (which may be negative), or a parameter in microseconds."""

    type = sa.DateTime()
    inherit_cache = True
    name = "now"

    def __init__(self, offset: float | sa.BindParameter[int] = 0.0) -> None:
        if isinstance(offset, float | int):
            offset = sa.literal(microseconds(offset), sa.BigInteger)
        super().__init__(offset)


def later(parameter: str) -> now:
    """Return the time of a statement's execution plus its parameter of this name (``microseconds``)."""
    return now(sa.bindparam(parameter, type_=sa.BigInteger))


def microseconds(seconds: float) -> int:
    return int(seconds * 1_000_000)


@compiles(now, "mysql")
@compiles(now, "mariadb")
def _mysql(element: now, compiler: Any, **kw: Any) -> str:
    return f"DATE_ADD(UTC_TIMESTAMP(6), INTERVAL {compiler.process(element.clauses, **kw)} MICROSECOND)"


@compiles(now, "sqlite")
def _sqlite(element: now, compiler: Any, **kw: Any) -> str:
    # strftime knows milliseconds; the zeros make it the six digits that SQLAlchemy stores and compares as text.
    offset = compiler.process(element.clauses, **kw)
    return f"(strftime('%Y-%m-%d %H:%M:%f', 'now', ({offset} / 1000000.0) || ' seconds') || '000')"


@compiles(now, "postgresql")
def _postgresql(element: now, compiler: Any, **kw: Any) -> str:
    offset = compiler.process(element.clauses, **kw)
    return f"(timezone('utc', clock_timestamp()) + {offset} * interval '1 microsecond')"

# SPDX-License-Identifier: Apache-2.0
"""What is particular to PostgreSQL: the time limits of its connections, what it must be, and its errors by code.

oslo.db knows errors of PostgreSQL by their English words, and a server says them in its administrator's language. The
five letters of an SQLSTATE are the same in all.
"""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import exc_filters

from nova_lite import exception

# Serialization failure, deadlock, lock time-out: the transaction is run again as a whole.
_CONFLICTS = re.compile("40001|40P01|55P03")
# Connection failures, a server that ends or only starts, time-outs of the statement or of the session.
_LOST = re.compile("08...|57P0.|57014|25P03")
_DUPLICATE = "23505"


def connect_args(url: sa.URL, connect_timeout: int, read_timeout: int) -> dict[str, Any]:
    """Return libpq's parameters for connections that do not wait for longer than this, in seconds."""
    given = url.query.get("options", "")
    options = given if isinstance(given, str) else " ".join(given)
    return {
        "connect_timeout": connect_timeout,
        # The server ends what takes too long; a server that is gone without a word is found out by its silence.
        "options": f"{options} -c statement_timeout={read_timeout * 1000}".strip(),
        "keepalives_idle": max(read_timeout // 4, 1),
        "keepalives_interval": max(read_timeout // 4, 1),
        "tcp_user_timeout": read_timeout * 1000,
    }


def check(conn: sa.Connection) -> None:
    """Make sure that the database can hold any text.

    :raises DatabaseUnavailable: it cannot, with what to do.
    """
    encoding = conn.execute(sa.text("SELECT current_setting('server_encoding')")).scalar_one()
    if encoding != "UTF8":
        raise exception.DatabaseUnavailable(
            reason=f"the database's encoding is {encoding}, and not every name can be written in it: create it with "
            "ENCODING 'UTF8' TEMPLATE template0"
        )


def _code(error: Any) -> str | None:
    """Return the SQLSTATE: psycopg2 calls it pgcode, psycopg sqlstate; None if the error is not the server's."""
    found: str | None = getattr(error.orig, "pgcode", None) or getattr(error.orig, "sqlstate", None)
    return found


@exc_filters.filters("postgresql", sa.exc.OperationalError, ".*")
def _operational(error: Any, match: object, engine: str, is_disconnect: bool) -> None:
    code = _code(error)
    if code is not None and _CONFLICTS.fullmatch(code):
        raise db_exception.DBDeadlock(error)
    # Without a code: it could not be connected to, for whatever reason, or the connection broke.
    if code is None or _LOST.fullmatch(code):
        raise db_exception.DBConnectionError(error)


@exc_filters.filters("postgresql", sa.exc.IntegrityError, ".*")
def _integrity(error: Any, match: object, engine: str, is_disconnect: bool) -> None:
    if _code(error) == _DUPLICATE:
        raise db_exception.DBDuplicateEntry(inner_exception=error)

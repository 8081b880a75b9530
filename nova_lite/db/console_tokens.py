# SPDX-License-Identifier: Apache-2.0
"""Tokens that open consoles: each for one server, as it is running where it is now, and for a while.

Only a hash is kept. Nothing has to be taken back when a server stops or moves: whether a token still holds is told by
the books at the moment when it is used. The server is on the same host, and nothing was begun or ended since that gives
it another guest process (its operations say so). What listens at the address by then the host's compute says.
"""

from __future__ import annotations

import datetime
import hashlib
from typing import NamedTuple

import sqlalchemy as sa

from nova_lite.db import operations
from nova_lite.db.clock import now
from nova_lite.db.models import console_tokens, instances
from nova_lite.db.models import operations as operations_table
from nova_lite.objects.diagnostics import Screen

#: After any of these a server's guest is another process, somewhere else, or none.
_ENDING = (
    operations.DELETE,
    operations.STOP,
    operations.START,
    operations.REBOOT,
    operations.REBUILD,
    operations.SUSPEND,
    operations.RESUME,
    operations.RESCUE,
    operations.UNRESCUE,
    operations.SHELVE,
    operations.SHELVE_OFFLOAD,
    operations.UNSHELVE,
    operations.RESIZE,
    operations.MIGRATE,
    operations.LIVE_MIGRATE,
    operations.EVACUATE,
    operations.REVERT,
)


class Console(NamedTuple):
    """What a token that holds opens. host and port are where the screen was when it was made."""

    id: int
    instance_uuid: str
    console_type: str
    compute_host: str
    host: str
    port: int
    expires_at: datetime.datetime
    used_at: datetime.datetime | None


_COLUMNS = tuple(console_tokens.c[name] for name in Console._fields)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def create(
    conn: sa.Connection, token: str, instance_uuid: str, console_type: str, compute_host: str, screen: Screen, ttl: int
) -> None:
    """Write a token down, and forget those that have expired.

    :param ttl: seconds for which it holds.
    """
    conn.execute(sa.delete(console_tokens).where(console_tokens.c.expires_at < now()))
    values = {
        "token_hash": _hash(token),
        "instance_uuid": instance_uuid,
        "console_type": console_type,
        "compute_host": compute_host,
        "host": screen.host,
        "port": screen.port,
        "expires_at": now(ttl),
    }
    conn.execute(sa.insert(console_tokens).values(**values))


def find(conn: sa.Connection, token: str, reuse: bool) -> Console | None:
    """Return what a token opens; None if there is no such token, or it does not hold any more.

    :param reuse: whether one that was used holds.
    """
    since = console_tokens.c.created_at
    ended = sa.exists().where(
        operations_table.c.instance_uuid == console_tokens.c.instance_uuid,
        operations_table.c.kind.in_(_ENDING),
        sa.or_(
            operations_table.c.status == operations.ACTIVE,
            operations_table.c.created_at >= since,
            operations_table.c.finished_at >= since,
        ),
    )
    there = sa.and_(
        instances.c.uuid == console_tokens.c.instance_uuid,
        instances.c.host == console_tokens.c.compute_host,
        instances.c.deleted == 0,
    )
    statement = (
        sa.select(*_COLUMNS)
        .join(instances, there)
        .where(console_tokens.c.token_hash == _hash(token), console_tokens.c.expires_at > now(), sa.not_(ended))
    )
    if not reuse:
        statement = statement.where(console_tokens.c.used_at.is_(None))
    row = conn.execute(statement).one_or_none()
    return Console._make(row) if row is not None else None


def use(conn: sa.Connection, console: Console, reuse: bool) -> bool:
    """Note that a token is used; returns whether it may be, which of two at once only the first may."""
    mine = console_tokens.c.id == console.id
    if not reuse:
        mine = sa.and_(mine, console_tokens.c.used_at.is_(None))
    return conn.execute(sa.update(console_tokens).where(mine).values(used_at=now())).rowcount > 0

# SPDX-License-Identifier: Apache-2.0
"""Key pairs: the public halves, by user."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exception

from nova_lite import exception
from nova_lite.db import quotas
from nova_lite.db.models import key_pairs


@dataclass(frozen=True, slots=True)
class KeyPair:
    """type is ssh or x509; public_key is the key or the certificate as text."""

    id: int
    user_id: str
    name: str
    type: str
    fingerprint: str
    public_key: str
    created_at: datetime.datetime


_COLUMNS = tuple(key_pairs.c[name] for name in KeyPair.__dataclass_fields__)


def get(conn: sa.Connection, user_id: str, name: str) -> KeyPair:
    """:raises KeyPairNotFound: the user has none of that name."""
    mine = sa.and_(key_pairs.c.user_id == user_id, key_pairs.c.name == name)
    row = conn.execute(sa.select(*_COLUMNS).where(mine)).first()
    if row is None:
        raise exception.KeyPairNotFound(name=name, user=user_id)
    return KeyPair(*row)


def of_user(conn: sa.Connection, user_id: str, limit: int | None = None, marker: str | None = None) -> list[KeyPair]:
    """List a user's key pairs by name, those after the one that marker names.

    :raises BadRequest: the marker is not one of them.
    """
    statement = sa.select(*_COLUMNS).where(key_pairs.c.user_id == user_id)
    if marker is not None:
        try:
            get(conn, user_id, marker)
        except exception.KeyPairNotFound:
            raise exception.BadRequest(f"marker [{marker}] not found")
        statement = statement.where(key_pairs.c.name > marker)
    rows = conn.execute(statement.order_by(key_pairs.c.name).limit(limit))
    return [KeyPair(*row) for row in rows]


def create(
    conn: sa.Connection,
    conf: cfg.ConfigOpts,
    project_id: str,
    *,
    user_id: str,
    name: str,
    key_type: str,
    fingerprint: str,
    public_key: str,
) -> KeyPair:
    """Write a key pair and return it. The lock that its quota is counted under is that of the caller's project.

    :raises Conflict: the user has one of that name.
    :raises QuotaExceeded: the user has as many as are allowed.
    """
    quotas.lock(conn, project_id)
    mine = sa.select(sa.func.count()).where(key_pairs.c.user_id == user_id)
    limit = quotas.limits(conn, conf, project_id, user_id)["key_pairs"]
    if conn.execute(mine.where(key_pairs.c.name == name)).scalar_one():
        raise exception.Conflict(f"Key pair '{name}' already exists.")
    quotas.check_count("key_pairs", conn.execute(mine).scalar_one(), limit)
    values = {"type": key_type, "fingerprint": fingerprint, "public_key": public_key}
    try:
        with conn.begin_nested():
            conn.execute(sa.insert(key_pairs).values(user_id=user_id, name=name, **values))
    except db_exception.DBDuplicateEntry:
        raise exception.Conflict(f"Key pair '{name}' already exists.")
    return get(conn, user_id, name)


def count(conn: sa.Connection, user_id: str) -> int:
    return conn.execute(sa.select(sa.func.count()).where(key_pairs.c.user_id == user_id)).scalar_one()


def delete(conn: sa.Connection, user_id: str, name: str) -> None:
    """:raises KeyPairNotFound: the user has none of that name."""
    mine = sa.and_(key_pairs.c.user_id == user_id, key_pairs.c.name == name)
    if not conn.execute(sa.delete(key_pairs).where(mine)).rowcount:
        raise exception.KeyPairNotFound(name=name, user=user_id)

# SPDX-License-Identifier: Apache-2.0
"""Addresses of the built-in network."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

_TABLE: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "sqlite_autoincrement": True,
}


def upgrade() -> None:
    inspector = sa.inspect(op.get_bind())
    if not inspector.has_table("networks"):
        op.create_table(
            "networks",
            sa.Column("id", Id, autoincrement=True, nullable=False),
            sa.Column("uuid", sa.String(36), nullable=False),
            # Where the next search for a free address begins.
            sa.Column("next_address", sa.BigInteger(), nullable=False),
            sa.Column("created_at", Timestamp, nullable=False),
            sa.Column("updated_at", Timestamp, nullable=False),
            sa.PrimaryKeyConstraint("id", name="pk_networks"),
            sa.UniqueConstraint("uuid", name="uq_networks_uuid"),
            **_TABLE,
        )
    if not inspector.has_table("addresses"):
        op.create_table(
            "addresses",
            sa.Column("id", Id, autoincrement=True, nullable=False),
            sa.Column("network", sa.String(36), nullable=False),
            # The IPv4 address as a number.
            sa.Column("address", sa.BigInteger(), nullable=False),
            sa.Column("mac", sa.String(17), nullable=False),
            sa.Column("port", sa.String(36), nullable=False),
            sa.Column("instance_uuid", sa.String(36), nullable=False),
            # Of a deleted server: JSON list of [host, node] where a domain may still be, and since when.
            sa.Column("leaving", Text),
            sa.Column("leaving_since", Timestamp),
            sa.Column("created_at", Timestamp, nullable=False),
            sa.PrimaryKeyConstraint("id", name="pk_addresses"),
            sa.UniqueConstraint("address", name="uq_addresses_address"),
            **_TABLE,
        )
    have = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes("addresses")}
    for column in ("instance_uuid", "port", "leaving_since"):
        if f"ix_addresses_{column}" not in have:
            op.create_index(f"ix_addresses_{column}", "addresses", [column])


def downgrade() -> None:
    op.drop_table("addresses")
    op.drop_table("networks")

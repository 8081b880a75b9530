# SPDX-License-Identifier: Apache-2.0
"""Tokens that open servers' consoles."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def upgrade() -> None:
    if not sa.inspect(op.get_bind()).has_table("console_tokens"):
        op.create_table(
            "console_tokens",
            sa.Column("id", Id, autoincrement=True, nullable=False),
            # SHA-256 of the token: who reads the table opens nothing.
            sa.Column("token_hash", sa.String(64), nullable=False),
            sa.Column("instance_uuid", sa.String(36), nullable=False),
            sa.Column("console_type", sa.String(16), nullable=False),
            sa.Column("compute_host", sa.String(255), nullable=False),
            # Where the screen was when the token was made.
            sa.Column("host", sa.String(255), nullable=False),
            sa.Column("port", sa.Integer(), nullable=False),
            sa.Column("created_at", Timestamp, nullable=False),
            sa.Column("expires_at", Timestamp, nullable=False),
            sa.Column("used_at", Timestamp),
            sa.PrimaryKeyConstraint("id", name="pk_console_tokens"),
            sa.UniqueConstraint("token_hash", name="uq_console_tokens_token_hash"),
            mysql_engine="InnoDB",
            mysql_charset="utf8mb4",
            mysql_collate="utf8mb4_bin",
            sqlite_autoincrement=True,
        )
    have = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes("console_tokens")}
    if "ix_console_tokens_expires_at" not in have:
        op.create_index("ix_console_tokens_expires_at", "console_tokens", ["expires_at"])


def downgrade() -> None:
    op.drop_table("console_tokens")

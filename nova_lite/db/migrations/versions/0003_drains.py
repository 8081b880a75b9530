# SPDX-License-Identifier: Apache-2.0
"""Drains of hosts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def upgrade() -> None:
    if sa.inspect(op.get_bind()).has_table("drains"):
        return
    op.create_table(
        "drains",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        # The host's name while the drain goes on, NULL after it: at most one at a time.
        sa.Column("active_host", sa.String(255)),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("parallel", sa.Integer(), nullable=False),
        sa.Column("was_disabled", sa.Boolean(), nullable=False),
        sa.Column("servers", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(255)),
        sa.Column("lease_expires_at", Timestamp, nullable=False),
        sa.Column("message", Text),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.Column("finished_at", Timestamp),
        sa.PrimaryKeyConstraint("id", name="pk_drains"),
        sa.UniqueConstraint("uuid", name="uq_drains_uuid"),
        sa.UniqueConstraint("active_host", name="uq_drains_active_host"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("drains")

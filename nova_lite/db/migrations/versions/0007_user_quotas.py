# SPDX-License-Identifier: Apache-2.0
"""Quotas of single users, and files that are injected into servers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def upgrade() -> None:
    inspector = sa.inspect(op.get_bind())
    if not inspector.has_table("user_quota_limits"):
        op.create_table(
            "user_quota_limits",
            sa.Column("project_id", sa.String(255), nullable=False),
            sa.Column("user_id", sa.String(255), nullable=False),
            sa.Column("resource", sa.String(64), nullable=False),
            sa.Column("limit", sa.Integer(), nullable=False),
            sa.Column("updated_at", Timestamp, nullable=False),
            sa.PrimaryKeyConstraint("project_id", "user_id", "resource", name="pk_user_quota_limits"),
            mysql_engine="InnoDB",
            mysql_charset="utf8mb4",
            mysql_collate="utf8mb4_bin",
        )
    if "injected_files" not in {column["name"] for column in inspector.get_columns("instances")}:
        op.add_column("instances", sa.Column("injected_files", Text))


def downgrade() -> None:
    op.drop_column("instances", "injected_files")
    op.drop_table("user_quota_limits")

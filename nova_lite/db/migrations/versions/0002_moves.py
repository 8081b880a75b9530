# SPDX-License-Identifier: Apache-2.0
"""Moves of servers between hosts, and to other sizes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

_INDEXES = ("instance_uuid", "status", "open", "source_compute", "dest_compute")


def upgrade() -> None:
    inspector = sa.inspect(op.get_bind())
    if not inspector.has_table("migrations"):
        _create_migrations()
    made = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes("migrations")}
    for column in _INDEXES:
        if f"ix_migrations_{column}" not in made:
            op.create_index(f"ix_migrations_{column}", "migrations", [column])


def _create_migrations() -> None:
    op.create_table(
        "migrations",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("operation_uuid", sa.String(36), nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("source_compute", sa.String(255), nullable=False),
        sa.Column("source_node", sa.String(255), nullable=False),
        sa.Column("source_node_id", Id, nullable=False),
        sa.Column("dest_compute", sa.String(255)),
        sa.Column("dest_node", sa.String(255)),
        sa.Column("dest_node_id", Id),
        sa.Column("dest_host", sa.String(64)),
        sa.Column("old_flavor", Text, nullable=False),
        sa.Column("new_flavor", Text, nullable=False),
        sa.Column("old_vm_state", sa.String(32), nullable=False),
        sa.Column("held_cores", sa.Integer(), nullable=False),
        sa.Column("held_ram", sa.Integer(), nullable=False),
        sa.Column("wish", sa.String(16), nullable=False),
        sa.Column("shared_disks", sa.Boolean(), nullable=False),
        sa.Column("memory_total_bytes", sa.BigInteger()),
        sa.Column("memory_processed_bytes", sa.BigInteger()),
        sa.Column("memory_remaining_bytes", sa.BigInteger()),
        sa.Column("disk_total_bytes", sa.BigInteger()),
        sa.Column("disk_processed_bytes", sa.BigInteger()),
        sa.Column("disk_remaining_bytes", sa.BigInteger()),
        sa.Column("message", Text),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_migrations"),
        sa.UniqueConstraint("uuid", name="uq_migrations_uuid"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("migrations")

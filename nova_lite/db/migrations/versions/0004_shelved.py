# SPDX-License-Identifier: Apache-2.0
"""What a shelved server is unshelved from, and since when it is shelved."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

_INDEX = "ix_instances_shelved_at"


def upgrade() -> None:
    inspector = sa.inspect(op.get_bind())
    have = {column["name"] for column in inspector.get_columns("instances")}
    for column in (sa.Column("shelved_image", Text), sa.Column("shelved_at", Timestamp)):
        if column.name not in have:
            op.add_column("instances", column)
    if _INDEX not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes("instances")}:
        op.create_index(_INDEX, "instances", ["shelved_at"])


def downgrade() -> None:
    op.drop_index(_INDEX, "instances")
    op.drop_column("instances", "shelved_at")
    op.drop_column("instances", "shelved_image")

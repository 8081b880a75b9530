# SPDX-License-Identifier: Apache-2.0
"""What alembic runs to migrate: the connection, its transaction and its lock come from migration.py."""

from __future__ import annotations

from alembic import context

from nova_lite.db import models

connection = context.config.attributes.get("connection")
if connection is None:
    raise RuntimeError("Migrations are run by 'nova-lite-manage db sync', not by alembic's own command")

context.configure(connection=connection, target_metadata=models.metadata, render_as_batch=True)
context.run_migrations()

# SPDX-License-Identifier: Apache-2.0
"""The schema as it was first released.

A migration is history: it names every column itself and imports no model, so that it still does the same when the
models have moved on. MariaDB commits after every table, so a sync that was killed leaves some of them behind; the
next one goes on from there.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def _create_table(name: str, *parts: sa.schema.SchemaItem) -> None:
    if not sa.inspect(op.get_bind()).has_table(name):
        has_id = any(isinstance(part, sa.Column) and part.name == "id" for part in parts)
        op.create_table(
            name,
            *parts,
            mysql_engine="InnoDB",
            mysql_charset="utf8mb4",
            mysql_collate="utf8mb4_bin",
            sqlite_autoincrement=has_id,
        )


def _create_index(name: str, table: str, *columns: str) -> None:
    if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}:
        op.create_index(name, table, list(columns))


def _create_aggregates() -> None:
    _create_table(
        "aggregates",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("metadata", Text, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_aggregates"),
        sa.UniqueConstraint("name", name="uq_aggregates_name"),
        sa.UniqueConstraint("uuid", name="uq_aggregates_uuid"),
    )


def _create_flavors() -> None:
    _create_table(
        "flavors",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("flavorid", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("root_gb", sa.Integer(), nullable=False),
        sa.Column("ephemeral_gb", sa.Integer(), nullable=False),
        sa.Column("swap_mb", sa.Integer(), nullable=False),
        sa.Column("rxtx_factor", sa.Double(), nullable=False),
        sa.Column("is_public", sa.Boolean(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("description", Text),
        sa.Column("extra_specs", Text, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_flavors"),
        sa.UniqueConstraint("flavorid", name="uq_flavors_flavorid"),
        sa.UniqueConstraint("name", name="uq_flavors_name"),
    )


def _create_images() -> None:
    _create_table(
        "images",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("visibility", sa.String(16), nullable=False),
        sa.Column("disk_format", sa.String(16)),
        sa.Column("container_format", sa.String(16)),
        sa.Column("size", sa.BigInteger()),
        sa.Column("virtual_size", sa.BigInteger()),
        sa.Column("checksum", sa.String(64)),
        sa.Column("hash_value", sa.String(128)),
        sa.Column("min_disk", sa.Integer(), nullable=False),
        sa.Column("min_ram", sa.Integer(), nullable=False),
        sa.Column("protected", sa.Boolean(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("tags", Text, nullable=False),
        sa.Column("properties", Text, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_images"),
        sa.UniqueConstraint("uuid", name="uq_images_uuid"),
    )
    _create_index("ix_images_owner", "images", "owner")


def _create_instances() -> None:
    _create_table(
        "instances",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.String(255)),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("image_ref", sa.String(36)),
        sa.Column("image", Text, nullable=False),
        sa.Column("flavorid", sa.String(255), nullable=False),
        sa.Column("flavor", Text, nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("disk_gb", sa.Integer(), nullable=False),
        sa.Column("vm_state", sa.String(32), nullable=False),
        sa.Column("task_state", sa.String(32)),
        sa.Column("power_state", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(255)),
        sa.Column("node", sa.String(255)),
        sa.Column("node_id", Id),
        sa.Column("requested_zone", sa.String(255)),
        sa.Column("requested_host", sa.String(255)),
        sa.Column("requested_node", sa.String(255)),
        sa.Column("group_id", Id),
        sa.Column("scheduler_hints", Text, nullable=False),
        sa.Column("key_name", sa.String(255)),
        sa.Column("key_data", Text),
        sa.Column("user_data", Text),
        sa.Column("config_drive", sa.Boolean(), nullable=False),
        sa.Column("metadata", Text, nullable=False),
        sa.Column("networks", Text, nullable=False),
        sa.Column("addresses", Text, nullable=False),
        sa.Column("disk_config", sa.String(16), nullable=False),
        sa.Column("access_ip_v4", sa.String(64)),
        sa.Column("access_ip_v6", sa.String(64)),
        sa.Column("root_device_name", sa.String(64)),
        sa.Column("reservation_id", sa.String(255), nullable=False),
        sa.Column("launch_index", sa.Integer(), nullable=False),
        sa.Column("locked_by", sa.String(16)),
        sa.Column("locked_reason", sa.String(255)),
        sa.Column("fault_code", sa.Integer()),
        sa.Column("fault_message", Text),
        sa.Column("fault_details", Text),
        sa.Column("fault_at", Timestamp),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.Column("launched_at", Timestamp),
        sa.Column("terminated_at", Timestamp),
        sa.Column("deleted_at", Timestamp),
        sa.Column("deleted", Id, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_instances"),
        sa.UniqueConstraint("uuid", name="uq_instances_uuid"),
    )
    _create_index("ix_instances_deleted_created_at", "instances", "deleted", "created_at")
    _create_index("ix_instances_group_id", "instances", "group_id")
    _create_index("ix_instances_host", "instances", "host")
    _create_index("ix_instances_project_id_deleted_created_at", "instances", "project_id", "deleted", "created_at")
    _create_index("ix_instances_reservation_id", "instances", "reservation_id")
    _create_index("ix_instances_updated_at", "instances", "updated_at")


def _create_key_pairs() -> None:
    _create_table(
        "key_pairs",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("fingerprint", sa.String(255), nullable=False),
        sa.Column("public_key", Text, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_key_pairs"),
        sa.UniqueConstraint("user_id", "name", name="uq_key_pairs_user_id_name"),
    )


def _create_operations() -> None:
    _create_table(
        "operations",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("step", sa.String(32), nullable=False),
        sa.Column("owner", sa.String(255)),
        sa.Column("lease_expires_at", Timestamp, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("arguments", Text, nullable=False),
        sa.Column("message", Text),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.Column("finished_at", Timestamp),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
        sa.UniqueConstraint("uuid", name="uq_operations_uuid"),
    )
    _create_index("ix_operations_instance_uuid", "operations", "instance_uuid")
    _create_index("ix_operations_status_lease_expires_at", "operations", "status", "lease_expires_at")


def _create_quota_limits() -> None:
    _create_table(
        "quota_limits",
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("resource", sa.String(64), nullable=False),
        sa.Column("limit", sa.Integer(), nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "resource", name="pk_quota_limits"),
    )


def _create_quota_usages() -> None:
    _create_table(
        "quota_usages",
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("instances", sa.Integer(), nullable=False),
        sa.Column("cores", sa.BigInteger(), nullable=False),
        sa.Column("ram", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_quota_usages"),
    )


def _create_server_groups() -> None:
    _create_table(
        "server_groups",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("policy", sa.String(32), nullable=False),
        sa.Column("max_server_per_host", sa.Integer(), nullable=False),
        sa.Column("has_rule", sa.Boolean(), nullable=False),
        sa.Column("ticket", sa.BigInteger(), nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_server_groups"),
        sa.UniqueConstraint("uuid", name="uq_server_groups_uuid"),
    )
    _create_index("ix_server_groups_project_id", "server_groups", "project_id")


def _create_services() -> None:
    _create_table(
        "services",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("binary", sa.String(64), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("server", sa.String(255), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_reason", sa.String(255)),
        sa.Column("forced_down", sa.Boolean(), nullable=False),
        sa.Column("report_count", sa.Integer(), nullable=False),
        sa.Column("last_seen_at", Timestamp, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_services"),
        sa.UniqueConstraint("binary", "host", name="uq_services_binary_host"),
        sa.UniqueConstraint("uuid", name="uq_services_uuid"),
    )


def _create_aggregate_hosts() -> None:
    _create_table(
        "aggregate_hosts",
        sa.Column("aggregate_id", Id, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("aggregate_id", "host", name="pk_aggregate_hosts"),
        sa.ForeignKeyConstraint(["aggregate_id"], ["aggregates.id"], name="fk_aggregate_hosts_aggregate_id"),
    )


def _create_compute_nodes() -> None:
    _create_table(
        "compute_nodes",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("service_id", Id, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("hypervisor_type", sa.String(64), nullable=False),
        sa.Column("hypervisor_version", sa.Integer(), nullable=False),
        sa.Column("host_ip", sa.String(64), nullable=False),
        sa.Column("cpu_info", Text, nullable=False),
        sa.Column("architectures", Text, nullable=False),
        sa.Column("vm_modes", Text, nullable=False),
        sa.Column("total_vcpus", sa.Integer(), nullable=False),
        sa.Column("total_memory_mb", sa.Integer(), nullable=False),
        sa.Column("total_disk_gb", sa.Integer(), nullable=False),
        sa.Column("reserved_vcpus", sa.Integer(), nullable=False),
        sa.Column("reserved_memory_mb", sa.Integer(), nullable=False),
        sa.Column("reserved_disk_gb", sa.Integer(), nullable=False),
        sa.Column("cpu_allocation_ratio", sa.Double(), nullable=False),
        sa.Column("ram_allocation_ratio", sa.Double(), nullable=False),
        sa.Column("disk_allocation_ratio", sa.Double(), nullable=False),
        sa.Column("used_vcpus", sa.Integer(), nullable=False),
        sa.Column("used_memory_mb", sa.Integer(), nullable=False),
        sa.Column("used_disk_gb", sa.Integer(), nullable=False),
        sa.Column("instances", sa.Integer(), nullable=False),
        sa.Column("building", sa.Integer(), nullable=False),
        sa.Column("failed_builds", sa.Integer(), nullable=False),
        sa.Column("ticket", sa.BigInteger(), nullable=False),
        sa.Column("last_grant_ticket", sa.BigInteger(), nullable=False),
        sa.Column("last_grant_at", Timestamp),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_compute_nodes"),
        sa.ForeignKeyConstraint(["service_id"], ["services.id"], name="fk_compute_nodes_service_id"),
        sa.UniqueConstraint("host", "node", name="uq_compute_nodes_host_node"),
        sa.UniqueConstraint("uuid", name="uq_compute_nodes_uuid"),
    )
    _create_index("ix_compute_nodes_service_id", "compute_nodes", "service_id")
    _create_index("ix_compute_nodes_updated_at", "compute_nodes", "updated_at")


def _create_flavor_projects() -> None:
    _create_table(
        "flavor_projects",
        sa.Column("flavor_id", Id, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("flavor_id", "project_id", name="pk_flavor_projects"),
        sa.ForeignKeyConstraint(["flavor_id"], ["flavors.id"], name="fk_flavor_projects_flavor_id"),
    )


def _create_instance_tags() -> None:
    _create_table(
        "instance_tags",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("tag", sa.String(60), nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid", "tag", name="pk_instance_tags"),
        sa.ForeignKeyConstraint(["instance_uuid"], ["instances.uuid"], name="fk_instance_tags_instance_uuid"),
    )
    _create_index("ix_instance_tags_tag", "instance_tags", "tag")


def _create_operation_steps() -> None:
    _create_table(
        "operation_steps",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("operation_id", Id, nullable=False),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("host", sa.String(255)),
        sa.Column("started_at", Timestamp, nullable=False),
        sa.Column("finished_at", Timestamp),
        sa.Column("result", sa.String(16)),
        sa.Column("details", Text),
        sa.PrimaryKeyConstraint("id", name="pk_operation_steps"),
        sa.ForeignKeyConstraint(["operation_id"], ["operations.id"], name="fk_operation_steps_operation_id"),
    )
    _create_index("ix_operation_steps_operation_id", "operation_steps", "operation_id")


def _create_allocations() -> None:
    _create_table(
        "allocations",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("consumer", sa.String(36), nullable=False),
        sa.Column("migration", sa.String(36), nullable=False),
        sa.Column("node_id", Id, nullable=False),
        sa.Column("group_id", Id),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("disk_gb", sa.Integer(), nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_allocations"),
        sa.ForeignKeyConstraint(["node_id"], ["compute_nodes.id"], name="fk_allocations_node_id"),
        sa.UniqueConstraint("consumer", "migration", name="uq_allocations_consumer_migration"),
    )
    _create_index("ix_allocations_group_id", "allocations", "group_id")
    _create_index("ix_allocations_node_id", "allocations", "node_id")


def _create_grants() -> None:
    _create_table(
        "grants",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("consumer", sa.String(36), nullable=False),
        sa.Column("migration", sa.String(36), nullable=False),
        sa.Column("node_id", Id, nullable=False),
        sa.Column("ticket", sa.BigInteger(), nullable=False),
        sa.Column("group_id", Id),
        sa.Column("group_ticket", sa.BigInteger()),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("disk_gb", sa.Integer(), nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("expires_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
        sa.ForeignKeyConstraint(["node_id"], ["compute_nodes.id"], name="fk_grants_node_id"),
        sa.UniqueConstraint("consumer", "migration", name="uq_grants_consumer_migration"),
    )
    _create_index("ix_grants_expires_at", "grants", "expires_at")
    _create_index("ix_grants_group_id", "grants", "group_id")
    _create_index("ix_grants_node_id", "grants", "node_id")


def upgrade() -> None:
    _create_aggregates()
    _create_flavors()
    _create_images()
    _create_instances()
    _create_key_pairs()
    _create_operations()
    _create_quota_limits()
    _create_quota_usages()
    _create_server_groups()
    _create_services()
    _create_aggregate_hosts()
    _create_compute_nodes()
    _create_flavor_projects()
    _create_instance_tags()
    _create_operation_steps()
    _create_allocations()
    _create_grants()


def downgrade() -> None:
    for table in (
        "grants",
        "allocations",
        "operation_steps",
        "instance_tags",
        "flavor_projects",
        "compute_nodes",
        "aggregate_hosts",
        "services",
        "server_groups",
        "quota_usages",
        "quota_limits",
        "operations",
        "key_pairs",
        "instances",
        "images",
        "flavors",
        "aggregates",
    ):
        op.drop_table(table)

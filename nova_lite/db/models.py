# SPDX-License-Identifier: Apache-2.0
"""The schema, as SQLAlchemy Core tables. Migrations make it; a test holds the two against each other.

Names follow Nova's. Every time is the database's (clock.py). Deleted instances stay as rows (``deleted`` is the row's
own id then) since their uuid, actions and names are still asked for; everything else is removed when it ends.
Documents (flavor as pinned, hints, metadata) are JSON text: nothing ever searches in them.
"""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from nova_lite.db.clock import Timestamp, now

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite counts rows only in a column that is INTEGER.
Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
Uuid = sa.String(36)
Name = sa.String(255)


def _id() -> sa.Column[int]:
    return sa.Column("id", Id, primary_key=True, autoincrement=True)


def _created() -> sa.Column[datetime.datetime]:
    return sa.Column("created_at", Timestamp, nullable=False, default=now())


def _updated() -> sa.Column[datetime.datetime]:
    return sa.Column("updated_at", Timestamp, nullable=False, default=now(), onupdate=now())


def _amounts(prefix: str = "") -> list[sa.Column[int]]:
    return [
        sa.Column(f"{prefix}{part}", sa.Integer, nullable=False, default=0)
        for part in ("vcpus", "memory_mb", "disk_gb")
    ]


def _table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    # SQLite gives the id of a deleted row away again unless it is told not to; a grant's id must never come back.
    has_id = any(isinstance(part, sa.Column) and part.name == "id" for part in parts)
    return sa.Table(
        name,
        metadata,
        *parts,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        # As SQLite compares: by default "a" is "A" and "á" to MariaDB, and every emoji is every other.
        mysql_collate="utf8mb4_bin",
        sqlite_autoincrement=has_id,
    )


services = _table(
    "services",
    _id(),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("binary", sa.String(64), nullable=False),
    sa.Column("host", Name, nullable=False),
    # The RPC server that serves this host; a compute process may serve many hosts.
    sa.Column("server", Name, nullable=False),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("disabled_reason", Name),
    sa.Column("forced_down", sa.Boolean, nullable=False, default=False),
    sa.Column("report_count", sa.Integer, nullable=False, default=0),
    sa.Column("last_seen_at", Timestamp, nullable=False, default=now()),
    _created(),
    _updated(),
    sa.UniqueConstraint("binary", "host"),
)

compute_nodes = _table(
    "compute_nodes",
    _id(),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("service_id", Id, sa.ForeignKey("services.id"), nullable=False, index=True),
    sa.Column("host", Name, nullable=False),
    sa.Column("node", Name, nullable=False),
    sa.Column("hypervisor_type", sa.String(64), nullable=False),
    sa.Column("hypervisor_version", sa.Integer, nullable=False),
    sa.Column("host_ip", sa.String(64), nullable=False),
    sa.Column("cpu_info", Text, nullable=False),
    # What images may ask for: JSON lists.
    sa.Column("architectures", Text, nullable=False),
    sa.Column("vm_modes", Text, nullable=False),
    *_amounts("total_"),
    *_amounts("reserved_"),
    sa.Column("cpu_allocation_ratio", sa.Double, nullable=False),
    sa.Column("ram_allocation_ratio", sa.Double, nullable=False),
    sa.Column("disk_allocation_ratio", sa.Double, nullable=False),
    # The sum of the node's allocations, kept in the transaction that changes them.
    *_amounts("used_"),
    sa.Column("instances", sa.Integer, nullable=False, default=0),
    sa.Column("building", sa.Integer, nullable=False, default=0),
    sa.Column("failed_builds", sa.Integer, nullable=False, default=0),
    # The order of grants on this node, handed out under the row's lock.
    sa.Column("ticket", sa.BigInteger, nullable=False, default=0),
    sa.Column("last_grant_ticket", sa.BigInteger, nullable=False, default=0),
    sa.Column("last_grant_at", Timestamp),
    # Raised with whatever changes of the node or its service but amounts and counts.
    sa.Column("revision", sa.Integer, nullable=False, default=0),
    _created(),
    # Whatever matters to a scheduler's view touches it.
    sa.Column("updated_at", Timestamp, nullable=False, default=now(), onupdate=now(), index=True),
    sa.UniqueConstraint("host", "node"),
)

server_groups = _table(
    "server_groups",
    _id(),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("project_id", Name, nullable=False, index=True),
    sa.Column("user_id", Name, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("policy", sa.String(32), nullable=False),
    sa.Column("max_server_per_host", sa.Integer, nullable=False, default=1),
    # Whether the rule was given: the API shows only what was given.
    sa.Column("has_rule", sa.Boolean, nullable=False, default=False),
    # The order of grants in this group, handed out under the row's lock.
    sa.Column("ticket", sa.BigInteger, nullable=False, default=0),
    _created(),
    _updated(),
)

grants = _table(
    "grants",
    _id(),
    sa.Column("consumer", Uuid, nullable=False),
    # The move that the grant is for, "" for a boot: with the consumer, the purpose.
    sa.Column("migration", Uuid, nullable=False, default=""),
    sa.Column("node_id", Id, sa.ForeignKey("compute_nodes.id"), nullable=False, index=True),
    sa.Column("ticket", sa.BigInteger, nullable=False),
    # No foreign key: a group may be deleted while a grant of a member travels.
    sa.Column("group_id", Id, index=True),
    sa.Column("group_ticket", sa.BigInteger),
    *_amounts(),
    _created(),
    sa.Column("expires_at", Timestamp, nullable=False, index=True),
    sa.UniqueConstraint("consumer", "migration"),
)

allocations = _table(
    "allocations",
    _id(),
    sa.Column("consumer", Uuid, nullable=False),
    # The move that owns this half, "" for the half that the server itself owns.
    sa.Column("migration", Uuid, nullable=False, default=""),
    sa.Column("node_id", Id, sa.ForeignKey("compute_nodes.id"), nullable=False, index=True),
    sa.Column("group_id", Id, index=True),
    *_amounts(),
    _created(),
    sa.UniqueConstraint("consumer", "migration"),
)

instances = _table(
    "instances",
    _id(),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("project_id", Name, nullable=False),
    sa.Column("user_id", Name, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("description", Name),
    sa.Column("hostname", Name, nullable=False),
    sa.Column("image_ref", Uuid),
    sa.Column("image", Text, nullable=False),
    sa.Column("flavorid", Name, nullable=False),
    sa.Column("flavor", Text, nullable=False),
    *_amounts(),
    sa.Column("vm_state", sa.String(32), nullable=False),
    sa.Column("task_state", sa.String(32)),
    sa.Column("power_state", sa.Integer, nullable=False, default=0),
    sa.Column("host", Name, index=True),
    sa.Column("node", Name),
    sa.Column("node_id", Id),
    # As asked for, and as it is.
    sa.Column("requested_zone", Name),
    sa.Column("requested_host", Name),
    sa.Column("requested_node", Name),
    sa.Column("group_id", Id, index=True),
    sa.Column("scheduler_hints", Text, nullable=False),
    sa.Column("key_name", Name),
    sa.Column("key_data", Text),
    sa.Column("user_data", Text),
    # JSON list of [path, content in base64]; they go to the guest on its config drive.
    sa.Column("injected_files", Text),
    sa.Column("config_drive", sa.Boolean, nullable=False, default=False),
    sa.Column("metadata", Text, nullable=False),
    sa.Column("networks", Text, nullable=False),
    sa.Column("addresses", Text, nullable=False),
    sa.Column("disk_config", sa.String(16), nullable=False, default="MANUAL"),
    sa.Column("access_ip_v4", sa.String(64)),
    sa.Column("access_ip_v6", sa.String(64)),
    sa.Column("root_device_name", sa.String(64)),
    sa.Column("reservation_id", Name, nullable=False),
    sa.Column("launch_index", sa.Integer, nullable=False, default=0),
    sa.Column("locked_by", sa.String(16)),
    sa.Column("locked_reason", Name),
    sa.Column("fault_code", sa.Integer),
    sa.Column("fault_message", Text),
    sa.Column("fault_details", Text),
    sa.Column("fault_at", Timestamp),
    _created(),
    _updated(),
    sa.Column("launched_at", Timestamp),
    sa.Column("terminated_at", Timestamp),
    sa.Column("deleted_at", Timestamp),
    sa.Column("deleted", Id, nullable=False, default=0),
    # What a shelved server is unshelved from, and since when it is shelved.
    sa.Column("shelved_image", Text),
    sa.Column("shelved_at", Timestamp),
    sa.Index("ix_instances_shelved_at", "shelved_at"),
    sa.Index("ix_instances_project_id_deleted_created_at", "project_id", "deleted", "created_at"),
    sa.Index("ix_instances_deleted_created_at", "deleted", "created_at"),
    sa.Index("ix_instances_reservation_id", "reservation_id"),
    sa.Index("ix_instances_updated_at", "updated_at"),
)

instance_tags = _table(
    "instance_tags",
    sa.Column("instance_uuid", Uuid, sa.ForeignKey("instances.uuid"), primary_key=True),
    sa.Column("tag", sa.String(60), primary_key=True),
    sa.Index("ix_instance_tags_tag", "tag"),
)

operations = _table(
    "operations",
    _id(),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("instance_uuid", Uuid, nullable=False, index=True),
    sa.Column("project_id", Name, nullable=False),
    sa.Column("user_id", Name, nullable=False),
    sa.Column("request_id", sa.String(64), nullable=False),
    # active, succeeded, failed or cancelled.
    sa.Column("status", sa.String(16), nullable=False, default="active"),
    sa.Column("step", sa.String(32), nullable=False),
    # Who works on it now, and until when, by the database's clock; a lease that ran out is anybody's.
    sa.Column("owner", Name),
    sa.Column("lease_expires_at", Timestamp, nullable=False, default=now()),
    sa.Column("attempt", sa.Integer, nullable=False, default=0),
    sa.Column("arguments", Text, nullable=False),
    sa.Column("message", Text),
    _created(),
    _updated(),
    sa.Column("finished_at", Timestamp),
    sa.Index("ix_operations_status_lease_expires_at", "status", "lease_expires_at"),
)

operation_steps = _table(
    "operation_steps",
    _id(),
    sa.Column("operation_id", Id, sa.ForeignKey("operations.id"), nullable=False, index=True),
    sa.Column("event", sa.String(64), nullable=False),
    sa.Column("host", Name),
    sa.Column("started_at", Timestamp, nullable=False, default=now()),
    sa.Column("finished_at", Timestamp),
    sa.Column("result", sa.String(16)),
    sa.Column("details", Text),
)

# Moves of servers between hosts, or to another size. Rows stay: they prove what left a host.
migrations = _table(
    "migrations",
    _id(),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("instance_uuid", Uuid, nullable=False, index=True),
    # The operation that works on it now, or did last.
    sa.Column("operation_uuid", Uuid, nullable=False),
    # resize, migration, live-migration or evacuation.
    sa.Column("type", sa.String(32), nullable=False),
    sa.Column("status", sa.String(32), nullable=False, index=True),
    # Whether anything of it is left to be done, on the books or on a host.
    sa.Column("open", sa.Boolean, nullable=False, default=True, index=True),
    sa.Column("source_compute", Name, nullable=False, index=True),
    sa.Column("source_node", Name, nullable=False),
    sa.Column("source_node_id", Id, nullable=False),
    sa.Column("dest_compute", Name, index=True),
    sa.Column("dest_node", Name),
    sa.Column("dest_node_id", Id),
    sa.Column("dest_host", sa.String(64)),
    # What the server was before: flavors as pinned, and active or stopped.
    sa.Column("old_flavor", Text, nullable=False),
    sa.Column("new_flavor", Text, nullable=False),
    sa.Column("old_vm_state", sa.String(32), nullable=False),
    # Quota that the move holds beside the server's own: the server and its move hold the larger of the two sizes.
    sa.Column("held_cores", sa.Integer, nullable=False, default=0),
    sa.Column("held_ram", sa.Integer, nullable=False, default=0),
    # What was asked of a live migration that runs: "", abort or force-complete.
    sa.Column("wish", sa.String(16), nullable=False, default=""),
    # Whether source and destination see the same disks: who cleans up must leave them alone.
    sa.Column("shared_disks", sa.Boolean, nullable=False, default=False),
    *[
        sa.Column(f"{what}_{part}", sa.BigInteger)
        for what in ("memory", "disk")
        for part in ("total_bytes", "processed_bytes", "remaining_bytes")
    ],
    sa.Column("message", Text),
    sa.Column("project_id", Name, nullable=False),
    sa.Column("user_id", Name, nullable=False),
    _created(),
    _updated(),
)

drains = _table(
    "drains",
    _id(),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("host", Name, nullable=False),
    # The host's name while the drain goes on, NULL after it: at most one at a time.
    sa.Column("active_host", Name, unique=True),
    # active, completed or cancelled.
    sa.Column("status", sa.String(16), nullable=False, default="active"),
    # How many servers move at once.
    sa.Column("parallel", sa.Integer, nullable=False),
    # Whether the compute service was disabled already, and so stays it.
    sa.Column("was_disabled", sa.Boolean, nullable=False),
    # How many servers there were when it began.
    sa.Column("servers", sa.Integer, nullable=False),
    # Who drives it now, and until when, by the database's clock.
    sa.Column("owner", Name),
    sa.Column("lease_expires_at", Timestamp, nullable=False, default=now()),
    # What it waits for that it cannot move.
    sa.Column("message", Text),
    _created(),
    _updated(),
    sa.Column("finished_at", Timestamp),
)

flavors = _table(
    "flavors",
    _id(),
    sa.Column("flavorid", Name, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("root_gb", sa.Integer, nullable=False),
    sa.Column("ephemeral_gb", sa.Integer, nullable=False, default=0),
    sa.Column("swap_mb", sa.Integer, nullable=False, default=0),
    sa.Column("rxtx_factor", sa.Double, nullable=False, default=1.0),
    sa.Column("is_public", sa.Boolean, nullable=False, default=True),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("description", Text),
    sa.Column("extra_specs", Text, nullable=False),
    _created(),
    _updated(),
)

flavor_projects = _table(
    "flavor_projects",
    sa.Column("flavor_id", Id, sa.ForeignKey("flavors.id"), primary_key=True),
    sa.Column("project_id", Name, primary_key=True),
)

key_pairs = _table(
    "key_pairs",
    _id(),
    sa.Column("user_id", Name, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("type", sa.String(16), nullable=False, default="ssh"),
    sa.Column("fingerprint", Name, nullable=False),
    sa.Column("public_key", Text, nullable=False),
    _created(),
    sa.UniqueConstraint("user_id", "name"),
)

images = _table(
    "images",
    _id(),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name),
    sa.Column("owner", Name, nullable=False, index=True),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("visibility", sa.String(16), nullable=False),
    sa.Column("disk_format", sa.String(16)),
    sa.Column("container_format", sa.String(16)),
    sa.Column("size", sa.BigInteger),
    sa.Column("virtual_size", sa.BigInteger),
    sa.Column("checksum", sa.String(64)),
    sa.Column("hash_value", sa.String(128)),
    sa.Column("min_disk", sa.Integer, nullable=False, default=0),
    sa.Column("min_ram", sa.Integer, nullable=False, default=0),
    sa.Column("protected", sa.Boolean, nullable=False, default=False),
    sa.Column("hidden", sa.Boolean, nullable=False, default=False),
    sa.Column("tags", Text, nullable=False),
    sa.Column("properties", Text, nullable=False),
    _created(),
    _updated(),
)

# Built-in networks; a row is locked by whoever takes an address.
networks = _table(
    "networks",
    _id(),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    # Where the next search for a free address begins.
    sa.Column("next_address", sa.BigInteger, nullable=False, default=0),
    _created(),
    _updated(),
)

addresses = _table(
    "addresses",
    _id(),
    sa.Column("network", Uuid, nullable=False),
    # The IPv4 address as a number. The key keeps two servers from having the same.
    sa.Column("address", sa.BigInteger, nullable=False, unique=True),
    sa.Column("mac", sa.String(17), nullable=False),
    sa.Column("port", Uuid, nullable=False, index=True),
    sa.Column("instance_uuid", Uuid, nullable=False, index=True),
    # Of a deleted server: JSON list of [host, node] where a domain may still be, and since when.
    sa.Column("leaving", Text),
    sa.Column("leaving_since", Timestamp, index=True),
    _created(),
)

console_tokens = _table(
    "console_tokens",
    _id(),
    # SHA-256 of the token: who reads the table opens nothing.
    sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
    sa.Column("instance_uuid", Uuid, nullable=False),
    sa.Column("console_type", sa.String(16), nullable=False),
    sa.Column("compute_host", Name, nullable=False),
    # Where the screen was when the token was made.
    sa.Column("host", Name, nullable=False),
    sa.Column("port", sa.Integer, nullable=False),
    _created(),
    sa.Column("expires_at", Timestamp, nullable=False, index=True),
    sa.Column("used_at", Timestamp),
)

# Limits that differ from the defaults. project_id "" is the default class, which the API can change.
quota_limits = _table(
    "quota_limits",
    sa.Column("project_id", Name, primary_key=True),
    sa.Column("resource", sa.String(64), primary_key=True),
    sa.Column("limit", sa.Integer, nullable=False),
    _updated(),
)

# What a single user of a project may have of it: within the project's limits, and below them.
user_quota_limits = _table(
    "user_quota_limits",
    sa.Column("project_id", Name, primary_key=True),
    sa.Column("user_id", Name, primary_key=True),
    sa.Column("resource", sa.String(64), primary_key=True),
    sa.Column("limit", sa.Integer, nullable=False),
    _updated(),
)

# One row a project, locked by whoever takes or gives back; changed in the transaction that changes the instances.
quota_usages = _table(
    "quota_usages",
    sa.Column("project_id", Name, primary_key=True),
    sa.Column("instances", sa.Integer, nullable=False, default=0),
    sa.Column("cores", sa.BigInteger, nullable=False, default=0),
    sa.Column("ram", sa.BigInteger, nullable=False, default=0),
    _updated(),
)

aggregates = _table(
    "aggregates",
    _id(),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("metadata", Text, nullable=False),
    _created(),
    # Hosts that come and go touch it too.
    _updated(),
)

aggregate_hosts = _table(
    "aggregate_hosts",
    sa.Column("aggregate_id", Id, sa.ForeignKey("aggregates.id"), primary_key=True),
    sa.Column("host", Name, primary_key=True),
)

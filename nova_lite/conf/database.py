# SPDX-License-Identifier: Apache-2.0
"""Options of the database connection."""

from oslo_config import cfg

GROUP = "database"

OPTIONS = [
    cfg.StrOpt(
        "connection",
        default="sqlite:///$state_path/nova-lite.sqlite",
        secret=True,
        help="The database as a SQLAlchemy URL: mysql+pymysql://user:password@host/name?charset=utf8mb4, "
        "postgresql+psycopg2://user:password@host/name, or sqlite:///path for a cloud in one process.",
    ),
    cfg.BoolOpt(
        "galera_single_writer",
        default=False,
        help="Set it only if every service is connected to one and the same node of a Galera cluster. Galera does not "
        "share row locks between nodes, so services start on a node of a cluster only if this is set.",
    ),
    cfg.IntOpt("pool_size", default=16, min=1, max=1000, help="Connections that a process keeps open, per direction."),
    cfg.IntOpt(
        "pool_recycle",
        default=3600,
        min=1,
        help="Seconds after which an idle connection is replaced; less than MariaDB's wait_timeout.",
    ),
    cfg.IntOpt(
        "connect_timeout",
        default=10,
        min=1,
        max=600,
        help="Seconds that opening a connection may take.",
    ),
    cfg.IntOpt(
        "read_timeout",
        default=60,
        min=1,
        max=3600,
        help="Seconds that one statement may take before its connection counts as lost.",
    ),
    cfg.FloatOpt(
        "retry_for",
        default=60.0,
        min=0,
        max=3600,
        help="Seconds for which a running process retries a transaction whose connection was lost; deadlocks are "
        "retried at once.",
    ),
]

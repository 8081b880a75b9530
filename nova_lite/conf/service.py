# SPDX-License-Identifier: Apache-2.0
"""Options that every process reads."""

import socket

from oslo_config import cfg

GROUP = None

OPTIONS = [
    cfg.StrOpt(
        "host",
        default=socket.gethostname(),
        sample_default="<this machine's host name>",
        help="The name of this service's host. On a compute host it is the name that users and operators see, and it "
        "must not change while servers live there.",
    ),
    cfg.StrOpt(
        "state_path",
        default="/var/lib/nova-lite",
        help="The directory for what this process keeps on its own disk: instances, images, keys, the node's identity.",
    ),
    cfg.FloatOpt(
        "report_interval",
        default=10.0,
        min=0.1,
        max=3600,
        help="Seconds between two heartbeats of a service.",
    ),
    cfg.FloatOpt(
        "service_down_time",
        default=60.0,
        min=0.5,
        max=86400,
        help="Seconds without a heartbeat, by the database's clock, after which a service counts as down. It must be "
        "several times report_interval.",
    ),
    cfg.IntOpt(
        "graceful_shutdown_timeout",
        default=60,
        min=1,
        max=3600,
        help="Seconds that a stopping process may take to finish what it has begun.",
    ),
    cfg.IntOpt(
        "rpc_workers",
        default=16,
        min=1,
        max=1024,
        help="Threads of a process that serve calls from the bus.",
    ),
    cfg.PortOpt(
        "metrics_port",
        default=0,
        help="The TCP port on which this process shows its metrics in Prometheus' format; 0 for none.",
    ),
    cfg.StrOpt("metrics_host", default="127.0.0.1", help="The address on which metrics are shown."),
]

# SPDX-License-Identifier: Apache-2.0
"""Options of the conductor."""

from oslo_config import cfg

GROUP = "conductor"

OPTIONS = [
    cfg.IntOpt("workers", default=1, min=1, max=256, help="Conductor processes on this machine."),
    cfg.FloatOpt(
        "lease",
        default=30.0,
        min=1,
        max=3600,
        help="Seconds for which whoever works on an operation holds it; longer work renews the lease. An operation "
        "whose lease ran out is taken over by a sweep.",
    ),
    cfg.FloatOpt("sweep_interval", default=5.0, min=0.1, max=3600, help="Seconds between two sweeps."),
    cfg.IntOpt("sweep_batch", default=100, min=1, max=10000, help="Operations that one sweep takes over at the most."),
    cfg.IntOpt(
        "build_batch",
        default=100,
        min=1,
        max=1000,
        help="Builds that are sent to a scheduler in one call at the most.",
    ),
    cfg.FloatOpt(
        "scheduler_timeout",
        default=15.0,
        min=1,
        max=600,
        help="Seconds to wait for a scheduler before another one is asked.",
    ),
    cfg.IntOpt(
        "max_attempts",
        default=3,
        min=1,
        max=100,
        help="Hosts on which a build is tried before the server goes to ERROR. A race lost between schedulers is not "
        "an attempt.",
    ),
    cfg.FloatOpt(
        "compute_down_patience",
        default=300.0,
        min=0,
        max=86400,
        help="Seconds for which an operation waits for a compute host that went down in the middle of it; then it "
        "ends with an explanation.",
    ),
    cfg.FloatOpt(
        "scheduler_patience",
        default=300.0,
        min=1,
        max=86400,
        help="Seconds for which a build waits while no scheduler answers; then it ends with an explanation.",
    ),
    cfg.FloatOpt(
        "audit_interval",
        default=300.0,
        min=1,
        max=86400,
        help="Seconds between two audits of the books for the metric nova_lite_audit_findings. They only look; each "
        "reads all servers that are not deleted.",
    ),
    cfg.IntOpt(
        "disable_after_build_failures",
        default=10,
        min=0,
        max=10000,
        help="Builds that fail in a row on a host before its service is disabled, with the reason; 0 for never.",
    ),
    cfg.BoolOpt(
        "allow_resize_to_same_host",
        default=False,
        help="Resize a server on the host that it is on, if no other host can take it.",
    ),
    cfg.FloatOpt(
        "drain_interval",
        default=2.0,
        min=0.1,
        max=600,
        help="Seconds between two looks at the hosts that are being drained.",
    ),
    cfg.FloatOpt(
        "resize_confirm_window",
        default=0.0,
        min=0,
        help="Seconds after which resizes and migrations that wait for it are confirmed by themselves; 0 for never.",
    ),
]

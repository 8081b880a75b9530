# SPDX-License-Identifier: Apache-2.0
"""Options of the scheduler."""

from oslo_config import cfg

GROUP = "scheduler"


def _multiplier(name: str, default: float, text: str) -> cfg.FloatOpt:
    return cfg.FloatOpt(name, default=default, help=text)


OPTIONS = [
    cfg.IntOpt("workers", default=1, min=1, max=256, help="Scheduler processes on this machine."),
    cfg.ListOpt(
        "enabled_filters",
        default=[
            "requested_host",
            "excluded_hosts",
            "compute",
            "availability_zone",
            "aggregate_extra_specs",
            "image_properties",
            "same_host",
            "different_host",
            "server_group",
            "capacity",
        ],
        help="The filters that a host must pass, in this order; each is an entry point in nova_lite.filters.",
    ),
    cfg.ListOpt(
        "enabled_weighers",
        default=["ram", "cpu", "disk", "io_load", "build_failures", "soft_affinity", "soft_anti_affinity"],
        help="The weighers that rank the hosts that passed; each is an entry point in nova_lite.weighers.",
    ),
    _multiplier("ram_weight_multiplier", 1.0, "Weight of free memory. Positive spreads servers, negative packs them."),
    _multiplier("cpu_weight_multiplier", 1.0, "Weight of free virtual CPUs. Positive spreads, negative packs."),
    _multiplier("disk_weight_multiplier", 1.0, "Weight of free disk. Positive spreads, negative packs."),
    _multiplier("io_load_weight_multiplier", -1.0, "Weight of builds in progress on a host. Negative avoids them."),
    _multiplier("build_failures_weight_multiplier", 1000000.0, "Weight against builds that failed in a row."),
    _multiplier("soft_affinity_weight_multiplier", 10.0, "Weight of members of the server's soft-affinity group."),
    _multiplier(
        "soft_anti_affinity_weight_multiplier",
        10.0,
        "Weight against members of the soft-anti-affinity group.",
    ),
    cfg.StrOpt(
        "placement_policy",
        default="spread",
        choices=[
            ("spread", "prefer the emptiest hosts"),
            ("pack", "prefer the fullest hosts that still fit"),
        ],
        help="Which way the RAM, CPU and disk weighers pull; pack turns the sign of their multipliers.",
    ),
    cfg.FloatOpt(
        "near_equal",
        default=0.05,
        min=0,
        help="Hosts whose weight is at most this much below the best count as equal, and each scheduler picks among "
        "them in an order of its own. It keeps schedulers from marching to the same host in step.",
    ),
    cfg.IntOpt("batch", default=64, min=1, max=1000, help="Requests that are placed in one transaction at the most."),
    cfg.FloatOpt(
        "grant_lifetime",
        default=120.0,
        min=5,
        max=86400,
        help="Seconds after which a grant that no compute has consumed expires. Longer than every retry on the way; "
        "safe even when it is not.",
    ),
    cfg.FloatOpt(
        "reap_interval",
        default=10.0,
        min=0.1,
        max=3600,
        help="Seconds between two sweeps for expired grants.",
    ),
    cfg.FloatOpt(
        "view_overlap",
        default=2.0,
        min=0,
        max=600,
        help="Seconds before the newest change already seen from which changed hosts are read again, since changes do "
        "not become visible in the order of their times.",
    ),
    cfg.FloatOpt(
        "view_reload_interval", default=60.0, min=1, help="Seconds between two complete readings of the view."
    ),
    cfg.FloatOpt(
        "liveness_interval",
        default=2.0,
        min=0.1,
        max=600,
        help="Seconds between two readings of all heartbeats.",
    ),
]

# SPDX-License-Identifier: Apache-2.0
"""Options of the compute service."""

from oslo_config import cfg

GROUP = "compute"

OPTIONS = [
    cfg.StrOpt(
        "driver",
        default="fake",
        help="The hypervisor driver: libvirt, or fake (no guests at all); each is an entry point in nova_lite.virt.",
    ),
    cfg.FloatOpt("cpu_allocation_ratio", default=4.0, min=0.01, help="Virtual CPUs offered per CPU of the host."),
    cfg.FloatOpt("ram_allocation_ratio", default=1.0, min=0.01, help="Memory offered per memory of the host."),
    cfg.FloatOpt("disk_allocation_ratio", default=1.0, min=0.01, help="Disk offered per disk of the host."),
    cfg.IntOpt("reserved_host_cpus", default=0, min=0, help="CPUs that the host keeps for itself."),
    cfg.IntOpt("reserved_host_memory_mb", default=512, min=0, help="MiB of memory that the host keeps for itself."),
    cfg.IntOpt("reserved_host_disk_gb", default=0, min=0, help="GiB of disk that the host keeps for itself."),
    cfg.IntOpt(
        "max_concurrent_builds",
        default=10,
        min=1,
        max=1000,
        help="Servers that this process builds at once; further ones wait their turn.",
    ),
    cfg.IntOpt(
        "max_concurrent_live_migrations",
        default=1,
        min=1,
        max=100,
        help="Live migrations away from this process' hosts at once; further ones wait their turn, shown as queued.",
    ),
    cfg.FloatOpt(
        "live_migration_completion_timeout",
        default=800.0,
        min=0,
        help="Seconds per GiB of memory that a live migration may take; 0 for any time.",
    ),
    cfg.StrOpt(
        "live_migration_timeout_action",
        default="abort",
        choices=["abort", "force_complete"],
        help="What happens to a live migration that takes longer: it is aborted, or the guest is made to follow.",
    ),
    cfg.FloatOpt(
        "inventory_interval",
        default=60.0,
        min=0.1,
        max=86400,
        help="Seconds between two reports of inventory and domains. Only what changed is written.",
    ),
    cfg.FloatOpt(
        "shutdown_timeout",
        default=60.0,
        min=0,
        max=3600,
        help="Seconds that a guest may take to power off by itself before its power is taken away.",
    ),
    cfg.FloatOpt(
        "conductor_timeout",
        default=30.0,
        min=1,
        max=600,
        help="Seconds to wait for a conductor before another one is asked.",
    ),
    cfg.StrOpt(
        "instances_path",
        default="$state_path/instances",
        help="The directory for the disks, config drives and console logs of instances.",
    ),
    cfg.StrOpt(
        "image_cache_path",
        default="$state_path/image-cache",
        help="The directory for base images that instances' disks are overlays of.",
    ),
    cfg.IntOpt(
        "shelved_offload_time",
        default=0,
        min=-1,
        help="Seconds after which a shelved server gives its place on its host back; 0 for at once, -1 for never by "
        "itself. Set it for the conductors.",
    ),
    cfg.StrOpt(
        "snapshots_path",
        default="$state_path/snapshots",
        help="The directory for copies of disks until they are images; it needs room for the disks that are copied at "
        "once, and the hypervisor writes to it.",
    ),
    cfg.BoolOpt("force_config_drive", default=False, help="Give every server a config drive."),
]

# SPDX-License-Identifier: Apache-2.0
"""Options of the fake hypervisor."""

from oslo_config import cfg

GROUP = "fake"

OPTIONS = [
    cfg.ListOpt(
        "hosts",
        default=["$host"],
        help="The hosts that this process plays, each a compute service of its own. NAME or PREFIX[FIRST-LAST], as in "
        "host[1-1000].",
    ),
    cfg.IntOpt("vcpus", default=8, min=0, help="CPUs of each host."),
    cfg.IntOpt("memory_mb", default=16384, min=0, help="MiB of memory of each host."),
    cfg.IntOpt("disk_gb", default=200, min=0, help="GiB of disk of each host."),
    cfg.DictOpt(
        "sizes",
        default={},
        help="Sizes of single hosts that differ, as host:vcpus/memory_mb/disk_gb.",
    ),
    cfg.FloatOpt("spawn_delay", default=0.0, min=0, help="Seconds that starting a server takes."),
    cfg.FloatOpt("destroy_delay", default=0.0, min=0, help="Seconds that removing a server takes."),
    cfg.FloatOpt("power_delay", default=0.0, min=0, help="Seconds that stopping, starting or rebooting takes."),
    cfg.FloatOpt("live_migration_seconds", default=0.0, min=0, help="Seconds that a live migration takes."),
    cfg.BoolOpt("shared_disks", default=False, help="Whether all hosts see the same disks, as on shared storage."),
    cfg.StrOpt(
        "control_file",
        help="A JSON file of faults and delays by host or server name, read before each action: "
        '{"host1": {"spawn": {"fail": "no space left", "delay": 2.0}}, "*": {...}}.',
    ),
    cfg.StrOpt(
        "domains_path",
        default="$state_path/fake-domains",
        help="The directory in which the domains are kept, so that they outlive the process.",
    ),
]

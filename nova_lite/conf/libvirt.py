# SPDX-License-Identifier: Apache-2.0
"""Options of the libvirt driver."""

from oslo_config import cfg

GROUP = "libvirt"

OPTIONS = [
    cfg.StrOpt("connection_uri", default="qemu:///system", help="The libvirt daemon to drive."),
    cfg.StrOpt(
        "virt_type",
        default="kvm",
        choices=[("kvm", "hardware virtualisation"), ("qemu", "emulation, slow but everywhere")],
        help="How guests run. It is never guessed: a /dev/kvm that exists may still not work.",
    ),
    cfg.StrOpt(
        "cpu_mode",
        choices=[
            ("host-model", "a named model close to the host's; guests can move to similar hosts"),
            ("host-passthrough", "the host's very CPU, kvm only; guests can move to identical hosts alone"),
            ("custom", "the model that cpu_model names"),
            ("none", "what the hypervisor gives by itself"),
        ],
        help="The CPU that guests see. Unset, it is host-model for kvm and none for qemu.",
    ),
    cfg.StrOpt("cpu_model", help="cpu_mode=custom: the model, one of 'virsh cpu-models ARCH'."),
    cfg.StrOpt(
        "machine_type",
        default="pc",
        help="The machine that x86 guests are, as pc or q35. An image's property hw_machine_type goes before.",
    ),
    cfg.StrOpt(
        "disk_cache",
        default="none",
        choices=["none", "writeback", "writethrough", "directsync", "unsafe"],
        help="How the host caches guests' disks. none needs a file system with O_DIRECT, and is what live migration "
        "is safe with; writeback works on any.",
    ),
    cfg.BoolOpt("vnc_enabled", default=True, help="Give guests a screen, reachable over VNC."),
    cfg.StrOpt(
        "vnc_listen",
        default="127.0.0.1",
        help="The address of this host on which guests' screens listen. VNC has no password here: on any other "
        "address than loopback, whoever reaches it owns the screen.",
    ),
    cfg.IntOpt("tcg_cache_mb", default=32, min=1, max=1024, help="qemu: MiB of translated code kept per guest."),
    cfg.StrOpt(
        "host_ip",
        default="127.0.0.1",
        help="The address of this host that the API shows as the hypervisor's host_ip.",
    ),
    cfg.FloatOpt(
        "call_timeout",
        default=30.0,
        min=0.1,
        max=600,
        help="Seconds that libvirt may take to answer a call before the hypervisor counts as unavailable.",
    ),
    cfg.FloatOpt(
        "start_timeout",
        default=120.0,
        min=1,
        max=3600,
        help="Seconds that libvirt may take to start a guest before the hypervisor counts as unavailable.",
    ),
    cfg.FloatOpt(
        "save_timeout",
        default=600.0,
        min=1,
        max=86400,
        help="Seconds that libvirt may take to write a guest's memory to disk when it is suspended, or to read it when "
        "it is resumed.",
    ),
    cfg.FloatOpt(
        "connect_timeout",
        default=5.0,
        min=0.1,
        max=600,
        help="Seconds that a call waits for the connection to libvirt while there is none, as when it restarts.",
    ),
    cfg.FloatOpt(
        "reconnect_interval",
        default=1.0,
        min=0.1,
        max=600,
        help="Seconds between two attempts to connect to libvirt.",
    ),
    cfg.IntOpt(
        "keepalive_interval",
        default=5,
        min=1,
        max=600,
        help="Seconds between two questions whether libvirt is alive.",
    ),
    cfg.IntOpt(
        "keepalive_count",
        default=5,
        min=1,
        max=100,
        help="Unanswered questions after which libvirt counts as unavailable until a new connection is made.",
    ),
    cfg.IntOpt(
        "worker_threads",
        default=16,
        min=1,
        max=1024,
        help="Calls to libvirt that may be under way at once, each on a connection of its own: keep it well below "
        "libvirtd's max_clients. When all of them hang, further ones fail at once.",
    ),
]

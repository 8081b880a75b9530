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
        "snapshot_timeout",
        default=3600.0,
        min=1,
        max=86400,
        help="Seconds that copying a server's disk for an image of it may take.",
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
    cfg.StrOpt(
        "live_migration_uri",
        default="qemu+tcp://%s/system",
        help="The URI of this host's libvirt daemon for the daemons of other hosts, which bring running guests here. "
        "%s becomes live_migration_inbound_addr, or else the host's name. TCP is neither encrypted nor authenticated: "
        "use it in a network of its own, or qemu+tls.",
    ),
    cfg.StrOpt(
        "disk_transfer_uri",
        help="The URI of this host's libvirt daemon for the compute services of other hosts, which bring disks here. "
        "%s as in live_migration_uri, which it is unless set.",
    ),
    cfg.StrOpt(
        "live_migration_inbound_addr",
        help="The address or name of this host that guests come in by: also the memory and disks of live migrations "
        "go there. Unset, it is the host's name, and QEMU's traffic goes where that name resolves to.",
    ),
    cfg.IntOpt(
        "live_migration_bandwidth",
        default=0,
        min=0,
        help="MiB per second that a live migration may use at the most; 0 for what there is.",
    ),
    cfg.IntOpt(
        "live_migration_downtime",
        default=300,
        min=1,
        max=60000,
        help="Milliseconds that a guest may stand still at the end of its live migration.",
    ),
    cfg.BoolOpt(
        "live_migration_permit_auto_converge",
        default=False,
        help="Slow a guest down that changes its memory faster than that can be copied.",
    ),
    cfg.BoolOpt(
        "live_migration_permit_post_copy",
        default=False,
        help="Let force-complete switch a guest over before all its memory has come. Should either host or the network "
        "fail then, the guest is lost; without, force-complete pauses the guest for the rest.",
    ),
    cfg.BoolOpt(
        "live_migration_with_native_tls",
        default=False,
        help="Encrypt QEMU's own traffic of live migrations, memory and disks. It needs certificates on every host; "
        "see default_tls_x509_cert_dir in qemu.conf.",
    ),
    cfg.BoolOpt(
        "live_migration_unsafe",
        default=False,
        help="Tell libvirt not to check whether shared disks are safe to migrate with. For labs, whose shared storage "
        "is a directory that libvirt takes for a local one.",
    ),
    cfg.FloatOpt(
        "transfer_stall_timeout",
        default=60.0,
        min=1,
        max=3600,
        help="Seconds without any progress after which the transfer of a disk to another host has failed.",
    ),
]

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
]

# SPDX-License-Identifier: Apache-2.0
"""Options of how guests are connected."""

from oslo_config import cfg

GROUP = "network"

OPTIONS = [
    cfg.StrOpt(
        "driver",
        default="none",
        help="How guests are connected: none, or bridge; each is an entry point in nova_lite.network.",
    ),
    cfg.StrOpt("bridge", default="br0", help="bridge: the Linux bridge of this host that guests are plugged into."),
    cfg.IntOpt("mtu", default=1500, min=576, max=65521, help="bridge: the MTU of guests' interfaces."),
]

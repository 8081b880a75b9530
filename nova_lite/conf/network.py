# SPDX-License-Identifier: Apache-2.0
"""Options of how guests are connected."""

from oslo_config import cfg

GROUP = "network"

OPTIONS = [
    cfg.StrOpt(
        "driver",
        default="none",
        help="How guests of this host are connected: none, bridge, or fake (for the fake hypervisor, which plugs "
        "nothing in); each is an entry point in nova_lite.network.",
    ),
    cfg.StrOpt("bridge", default="br0", help="bridge: the Linux bridge of this host that guests are plugged into."),
    cfg.IntOpt("mtu", default=1500, min=576, max=65521, help="The MTU of guests' interfaces."),
    cfg.StrOpt(
        "subnet",
        help="The IPv4 subnet of the built-in network (10.0.0.0/16), out of which every server gets an address that "
        "asks for a network. It has to be the same for api and conductor, and reach from every host's bridge. Without "
        "it no addresses are handed out: guests have to find theirs, as by DHCP, and the API shows none.",
    ),
    cfg.StrOpt(
        "gateway",
        help="The address of the built-in network's router, which no server gets. By default the subnet's first one; "
        "'none' if there is no router.",
    ),
    cfg.ListOpt("dns", default=[], help="The addresses of the DNS servers that guests are told."),
    cfg.StrOpt(
        "allocation_range",
        help="The addresses that are handed out, as in 10.0.1.0-10.0.9.255; by default all of the subnet's. Users may "
        "ask for any other address of the subnet by name.",
    ),
    cfg.StrOpt("name", default="default", help="The built-in network's name, under which servers show their address."),
]

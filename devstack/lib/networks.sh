#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The two networks of the cloud: a bridge each in the root namespace, with an address. To be sourced.
#
# The control plane listens on the management network, and every host has an interface there, behind which its compute
# and its libvirt are. On the guest network are the guests of all hosts; from the root namespace a person reaches them.

# shellcheck disable=SC2034  # hosts.sh plugs them in
readonly MGMT_PORT=m GUEST_PORT=g

make_networks() {
    if has_address "$MGMT_BRIDGE" && has_address "$GUEST_BRIDGE"; then
        note "there"
        return
    fi
    check_networks_are_free
    make_bridge "$MGMT_BRIDGE" "$(address_in "$MGMT_RANGE" 1)/${MGMT_RANGE#*/}"
    make_bridge "$GUEST_BRIDGE" "$GUEST_GATEWAY/${GUEST_RANGE#*/}"
    ip -o -4 address show | grep -F " $SERVICE_HOST/" > /dev/null ||
        die "SERVICE_HOST=$SERVICE_HOST is no address of this machine; leave it out of $LOCAL_CONF"
}

remove_networks() {
    local bridge
    for bridge in "$MGMT_BRIDGE" "$GUEST_BRIDGE"; do
        if link_exists "$bridge"; then
            ip link delete "$bridge"
        fi
    done
}

link_exists() {
    [[ -e "/sys/class/net/$1" ]]
}

has_address() { # LINK
    link_exists "$1" && ip -o -4 address show dev "$1" | grep . > /dev/null
}

make_bridge() { # NAME ADDRESS
    link_exists "$1" || ip link add "$1" type bridge forward_delay 0
    has_address "$1" || ip address add "$2" dev "$1"
    ip link set "$1" up
}

# The name of a host's port in the root namespace: port_of HOST m|g
port_of() {
    echo "$PREFIX-$1-$2"
}

# Nothing of this machine may be in our ranges yet, nor reached by a route through them.
check_networks_are_free() {
    local problem
    problem="$(overlapping_networks 2>&1)" || die "$problem"
}

overlapping_networks() {
    python3 - "$MGMT_RANGE" "$GUEST_RANGE" "$MGMT_BRIDGE" "$GUEST_BRIDGE" << 'END'
import ipaddress
import subprocess
import sys

ranges = [ipaddress.ip_network(text) for text in sys.argv[1:3]]
ours = set(sys.argv[3:])
if ranges[0].overlaps(ranges[1]):
    sys.exit(f"MGMT_RANGE={ranges[0]} and GUEST_RANGE={ranges[1]} overlap; set others in local.conf")
shown = subprocess.run(["ip", "-4", "route", "show", "table", "all"], check=True, capture_output=True, text=True)
for line in shown.stdout.splitlines():
    words = line.split()
    device = words[words.index("dev") + 1] if "dev" in words else "?"
    target = words[1] if words[0] in ("local", "broadcast", "blackhole", "unreachable") else words[0]
    if target == "default" or device in ours:
        continue
    for name, ours_is in zip(("MGMT_RANGE", "GUEST_RANGE"), ranges):
        if ipaddress.ip_network(target, strict=False).overlaps(ours_is):
            sys.exit(f"{name}={ours_is} overlaps {target} on {device}; set another range in local.conf")
END
}

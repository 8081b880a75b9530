#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What happens to the cables of a host: cut, healed, slow. To be sourced.

# Prints the ports of a host that an argument means: ports_of HOST [management|guest|both]
ports_of() {
    case "${2:-both}" in
        management) port_of "$1" "$MGMT_PORT" ;;
        guest) port_of "$1" "$GUEST_PORT" ;;
        both) port_of "$1" "$MGMT_PORT"; port_of "$1" "$GUEST_PORT" ;;
        *) die "there is no cable '$2': management, guest or both" ;;
    esac
}

# Lets nothing through any more: cut_cables HOST [management|guest|both]
cut_cables() {
    local port
    for port in $(ports_of "$@"); do
        ip link set "$port" down
    done
}

# Puts cables back as they were at first, also those that were slow.
heal_cables() { # HOST [management|guest|both]
    local port
    for port in $(ports_of "$@"); do
        quicken_cable "$port"
        ip link set "$port" up
    done
}

# Delays every frame of the management cable, in each direction: slow_cable HOST MILLISECONDS
slow_cable() {
    local port
    [[ "$2" =~ ^[0-9]{1,5}$ ]] || die "slow wants milliseconds, as: devstack/host $1 slow 100"
    port="$(port_of "$1" "$MGMT_PORT")"
    quicken_cable "$port"
    [[ "$2" != 0 ]] || return 0
    if tc qdisc add dev "$port" root netem delay "$2ms" limit 100000 2> /dev/null; then
        # That is the way to the host; the way from it is at the host's end.
        in_host "$1" tc qdisc add dev eth0 root netem delay "$2ms" limit 100000
    else
        relay_cable "$1" "$port" "$2"
    fi
}

# Without netem, a process passes frames on between the host's port and another one on the bridge.
relay_cable() { # HOST PORT MILLISECONDS
    ip link add "$2-s" type veth peer name "$2-r"
    ip link set "$2" nomaster
    ip link set "$2-s" master "$MGMT_BRIDGE" up
    ip link set "$2-r" up
    launch "slow-$2" python3 "$DEVSTACK_DIR/lib/slow.py" "$2" "$2-r" "$3"
    wait_for 20 "slow-$2" "the start of the slow cable" relays "slow-$2"
}

relays() { # NAME
    log_since_start "$1" | grep relaying > /dev/null
}

quicken_cable() { # PORT
    local host="${1#"$PREFIX-"}"
    host="${host%-*}"
    tc qdisc del dev "$1" root 2> /dev/null || true
    in_host "$host" tc qdisc del dev eth0 root 2> /dev/null || true
    stop_process "slow-$1" 5 > /dev/null
    if link_exists "$1-s"; then
        ip link delete "$1-s"
        ip link set "$1" master "$MGMT_BRIDGE"
    fi
}

# Prints what is to be said of a host's cables.
cable_state() { # HOST
    local port name states=()
    for name in management guest; do
        port="$(ports_of "$1" "$name")"
        if ! link_exists "$port"; then
            continue
        elif [[ "$(< "/sys/class/net/$port/operstate")" != up ]]; then
            states+=("$name cut")
        elif link_exists "$port-s" || tc qdisc show dev "$port" 2> /dev/null | grep netem > /dev/null; then
            states+=("$name slow")
        fi
    done
    (IFS=,; echo "${states[*]:-well}")
}

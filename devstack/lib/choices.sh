#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Passwords and ports: chosen at the first run, kept in etc/passwords and etc/ports. To be sourced.

readonly PASSWORDS=(ADMIN_PASSWORD DATABASE_PASSWORD RABBIT_PASSWORD SERVICE_PASSWORD)

random_password() {
    od -An -N15 -tx1 /dev/urandom | tr -d ' \n'
}

choose_passwords() {
    local name
    [[ ! -e "$ETC_DIR/passwords" ]] || return 0
    (
        umask 077
        for name in "${PASSWORDS[@]}"; do
            printf '%s=%s\n' "$name" "${!name:-$(random_password)}"
        done > "$ETC_DIR/passwords.new"
        mv "$ETC_DIR/passwords.new" "$ETC_DIR/passwords"
    )
    read_choices
}

# A listener on all addresses takes the port as well: port_is_free ADDRESS PORT
port_is_free() {
    python3 - "$1" "$2" << 'END'
import socket
import sys

with socket.socket() as listener:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((sys.argv[1], int(sys.argv[2])))
        listener.listen()
    except OSError:
        sys.exit(1)
END
}

# The address that a port is taken on: the port mapper of Erlang and RabbitMQ's own traffic stay on the machine.
address_of_port() { # NAME
    case "$1" in
        EPMD_PORT | RABBIT_DIST_PORT) echo 127.0.0.1 ;;
        *) echo "$SERVICE_HOST" ;;
    esac
}

# Prints a port: what local.conf says, else the standard one, else the next that is free.
choose_port() { # NAME
    local name="$1" address port
    address="$(address_of_port "$name")"
    if [[ -n "${!name}" ]]; then
        port_is_free "$address" "${!name}" ||
            die "$name=${!name} is taken on $address by another program; set another one in $LOCAL_CONF"
        echo "${!name}"
        return
    fi
    for port in $(seq "${STANDARD_PORTS[$name]}" 10 "$((${STANDARD_PORTS[$name]} + 1000))"); do
        if port_is_free "$address" "$port"; then
            echo "$port"
            return
        fi
    done
    die "no port is free for $name on $address; set one in $LOCAL_CONF"
}

# Needs the addresses that the ports are taken on.
choose_ports() {
    local name port moved=()
    [[ ! -e "$ETC_DIR/ports" ]] || return 0
    for name in "${!STANDARD_PORTS[@]}"; do
        port="$(choose_port "$name")"
        printf '%s=%s\n' "$name" "$port"
        [[ -n "${!name}" || "$port" == "${STANDARD_PORTS[$name]}" ]] || moved+=("$name=$port")
    done | sort > "$ETC_DIR/ports.new"
    mv "$ETC_DIR/ports.new" "$ETC_DIR/ports"
    read_choices
}

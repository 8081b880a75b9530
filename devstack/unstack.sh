#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ends the cloud of devstack/stack.sh and removes all that is of it: processes, namespaces, bridges, data, logs and
# configuration. What took long to make stays in DEST: Python packages, and what was downloaded or built.

set -euo pipefail
TOP="$(dirname "$(dirname "$(readlink -f "$0")")")"
# shellcheck source=/dev/null
source "$TOP/devstack/lib/parts.sh"

# All at once: each takes a moment to finish what it has begun.
stop_services() {
    stop_glance &
    stop_keystone &
    stop_nova_lite
    wait
}

stop_bus_and_database() {
    stop_rabbitmq
    stop_mariadb
    end_marked_processes
}

# The log of this run is the last to go.
remove_files() {
    rm -rf "${DATA_DIR:?}" "${ETC_DIR:?}" "${RUN_DIR:?}" "${BIN_DIR:?}"
    find "$LOGDIR" -mindepth 1 ! -name unstack.log -delete
}

main() {
    [[ $# -eq 0 ]] || { echo "Usage: devstack/unstack.sh" >&2; exit 2; }
    must_be_root
    read_settings
    if [[ ! -d "$DEST" ]]; then
        echo "There is no cloud in $DEST."
        return
    fi
    check_dest
    lock_dest
    begin_steps 5 "$LOGDIR/unstack.log"
    step "nova_lite, Glance, Keystone" stop_services
    step "Hosts" stop_hosts
    step "RabbitMQ and MariaDB" stop_bus_and_database
    step "Networks" remove_networks
    step "Files" remove_files
    rm -rf "${LOGDIR:?}"
    say "Kept in $DEST: $(cd "$DEST" && find . -mindepth 1 -maxdepth 1 -type d -printf '%f ')"
}

main "$@"

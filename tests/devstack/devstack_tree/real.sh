#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Functions of DevStack that do what they say, on a database, a broker and a Keystone that are there: to be sourced after
# functions.sh. systemd is not there: processes are known by files in $DEST/run.

recreate_database() {
    record recreate_database "$@"
    mariadb --no-defaults --socket="$MARIADB_SOCKET" -e \
        "DROP DATABASE IF EXISTS $1; CREATE DATABASE $1 CHARACTER SET utf8mb3"
}

openstack() {
    record openstack "$@"
    "$OPENSTACK" "$@"
}

create_service_user() { # USER ROLE
    "$OPENSTACK" --os-cloud devstack-admin user create --domain default --password "$SERVICE_PASSWORD" "$1"
    "$OPENSTACK" --os-cloud devstack-admin role add --project "$SERVICE_PROJECT_NAME" --user "$1" "$2"
}

get_or_create_service() { # NAME TYPE DESCRIPTION
    "$OPENSTACK" --os-cloud devstack-admin service create --name "$1" --description "$3" "$2"
}

get_or_create_endpoint() { # SERVICE REGION URL
    "$OPENSTACK" --os-cloud devstack-admin endpoint create --region "$2" "$1" public "$3"
}

run_process() { # SERVICE COMMAND
    mkdir -p "$DEST/run"
    # shellcheck disable=SC2086  # a command with its arguments
    setsid $2 < /dev/null > "$DEST/run/$1.log" 2>&1 &
    echo $! > "$DEST/run/$1.pid"
}

stop_process() { # SERVICE
    local pid
    [[ -e "$DEST/run/$1.pid" ]] || return 0
    pid="$(< "$DEST/run/$1.pid")"
    kill "$pid" 2> /dev/null || true
    while [[ -d "/proc/$pid" && "$(cut -d ' ' -f 3 "/proc/$pid/stat")" != Z ]]; do
        sleep 0.1
    done
    rm "$DEST/run/$1.pid"
}

wait_for_service() { # SECONDS URL
    timeout "$1" sh -c "until curl --silent --output /dev/null --noproxy '*' '$2'; do sleep 0.2; done"
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nova_lite's control plane: configuration, schema and processes. To be sourced.
#
# The control plane's file has what it has in common, and the logins of nova-lite-manage; each service has a second file
# with its own. Hosts have files of their own, without a login at the database (hosts.sh).
# Conductors and schedulers are processes with a host name each (controller-1, ...), so that one of them can be lost.

write_nova_lite_config() {
    mkdir -p "$ETC_DIR/nova-lite" "$DATA_DIR/nova-lite"
    (
        umask 077
        {
            echo "# Made by devstack/stack.sh; what local.conf has for it comes last."
            nova_lite_common_config controller "$DATA_DIR/nova-lite" api
            nova_lite_control_config
            write_post_config NOVA_LITE_CONF
        } | replace_file "$NOVA_LITE_CONF"
        local service
        for service in api conductor scheduler; do
            nova_lite_logins "$service" | replace_file "$(nova_lite_logins_file "$service")"
        done
    )
}

nova_lite_logins_file() { # SERVICE
    echo "$ETC_DIR/nova-lite/logins-of-$1.conf"
}

# Prints how a service logs in at the bus and at the database.
nova_lite_logins() { # SERVICE
    cat << END
[DEFAULT]
transport_url = $(transport_url "$1")

[database]
connection = $(database_url nova_lite "nova_lite_$1")
END
}

# What every process of nova_lite needs: nova_lite_common_config HOST STATE_PATH USER_OF_THE_BUS
nova_lite_common_config() {
    cat << END
[DEFAULT]
host = $1
state_path = $2
transport_url = $(transport_url "$3")
# A lab may know sooner than a large cloud that a host is lost.
report_interval = 2
service_down_time = 20

[oslo_messaging_rabbit]
heartbeat_timeout_threshold = 15

[compute]
driver = $VIRT_DRIVER

END
    network_config
    if is_true "$ENABLE_KEYSTONE"; then
        cat << END
[image]
driver = glance

[glance]
$(keystone_login nova)

END
    else
        cat << END
[image]
driver = directory
path = $DATA_DIR/images

END
    fi
}

# The built-in network, out of which servers get addresses; this machine is its router. Hosts have the first ones.
network_config() {
    local size
    size=$((1 << (32 - ${GUEST_RANGE#*/})))
    cat << END
[network]
driver = $([[ "$VIRT_DRIVER" == libvirt ]] && echo bridge || echo fake)
bridge = br-guest
subnet = $GUEST_RANGE
gateway = $GUEST_GATEWAY
allocation_range = $(address_in "$GUEST_RANGE" $((HOSTS + 11)))-$(address_in "$GUEST_RANGE" $((size - 2)))

END
}

# What only the control plane may know.
nova_lite_control_config() {
    cat << END
[database]
connection = $(database_url nova_lite nova_lite_manage)

[api]
listen = $SERVICE_HOST
port = $NOVA_LITE_PORT
public_url = $COMPUTE_URL
workers = $API_WORKERS

END
    if is_true "$ENABLE_KEYSTONE"; then
        cat << END
[auth]
strategy = keystone

[keystone_authtoken]
www_authenticate_uri = $AUTH_URL
$(keystone_login nova)
END
    else
        cat << END
[auth]
strategy = embedded
users_file = $ETC_DIR/nova-lite/users.yaml
region = $REGION_NAME
END
    fi
}

nova_lite_manage() {
    "$NOVA_LITE_VENV/bin/nova-lite-manage" --config-file "$NOVA_LITE_CONF" "$@"
}

# The embedded identity service's users; with Keystone they are there already (furnish.py).
make_embedded_users() {
    if is_true "$ENABLE_KEYSTONE" || [[ -e "$ETC_DIR/nova-lite/users.yaml" ]]; then
        return 0
    fi
    NOVA_LITE_PASSWORD="$ADMIN_PASSWORD" nova_lite_manage user add admin --project admin --role admin
    NOVA_LITE_PASSWORD="$ADMIN_PASSWORD" nova_lite_manage user add admin --project demo --role admin
    NOVA_LITE_PASSWORD="$ADMIN_PASSWORD" nova_lite_manage user add demo --project demo --role member
}

# The names of the control plane's processes, which are those of their pid files and logs.
control_processes() {
    local number
    echo nova-lite-api
    for ((number = 1; number <= CONDUCTORS; number++)); do
        echo "nova-lite-conductor-$number"
    done
    for ((number = 1; number <= SCHEDULERS; number++)); do
        echo "nova-lite-scheduler-$number"
    done
}

start_nova_lite() {
    local name missing=()
    for name in $(control_processes); do
        is_running "$name" || missing+=("$name")
    done
    if [[ ${#missing[@]} -eq 0 ]]; then
        note "runs"
        return
    fi
    nova_lite_manage db sync
    nova_lite_sql grants.sql | sql
    make_embedded_users
    for name in "${missing[@]}"; do
        launch_control_process "$name"
    done
    wait_for 60 nova-lite-api "the answer of nova-lite-api" answers_http "$COMPUTE_URL/"
    for name in "${missing[@]}"; do
        wait_for 60 "$name" "the start of $name" has_started "$name"
    done
}

launch_control_process() { # NAME
    local program="${1%-[0-9]*}" host=controller
    [[ "$program" == "$1" ]] || host="controller-${1##*-}"
    launch "$1" env "OS_DEFAULT__HOST=$host" "$NOVA_LITE_VENV/bin/$program" --config-file "$NOVA_LITE_CONF" \
        --config-file "$(nova_lite_logins_file "${program#nova-lite-}")"
}

# A process of nova_lite says once that it serves.
has_started() { # NAME
    log_since_start "$1" | grep "started service=" > /dev/null
}

stop_nova_lite() {
    local path
    for path in "$RUN_DIR"/nova-lite-*.pid; do
        [[ -e "$path" ]] || continue
        stop_process "$(basename "$path" .pid)" 10 &
    done
    wait
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Keystone: from PyPI, in MariaDB, served by gunicorn. To be sourced.

write_keystone_config() {
    local keys
    mkdir -p "$ETC_DIR/keystone"
    for keys in fernet credential; do
        make_fernet_keys "$ETC_DIR/keystone/$keys"
    done
    (
        umask 077
        {
            cat << END
# Made by devstack/stack.sh; what local.conf has for it comes last.
[DEFAULT]
public_endpoint = http://$SERVICE_HOST:$KEYSTONE_PORT/
use_stderr = true

[database]
connection = $(database_url keystone)

[fernet_tokens]
key_repository = $ETC_DIR/keystone/fernet

[fernet_receipts]
key_repository = $ETC_DIR/keystone/fernet

[credential]
key_repository = $ETC_DIR/keystone/credential

# The passwords are long and random: a hash that is slow on purpose would protect nothing.
[identity]
password_hash_rounds = 4

# One process serves it, so what it remembers is all there is to forget.
[cache]
enabled = true
backend = oslo_cache.dict
END
            write_post_config KEYSTONE_CONF
        } | replace_file "$KEYSTONE_CONF"
        gunicorn_config "$KEYSTONE_PORT" > "$ETC_DIR/keystone/gunicorn.conf.py"
    )
}

# What fernet_setup does, without the seconds that starting it takes.
make_fernet_keys() { # DIRECTORY
    local number
    [[ ! -d "$1" ]] || return 0
    (
        umask 077
        mkdir -p "$1.new"
        for number in 0 1; do
            head -c 32 /dev/urandom | base64 | tr '+/' '-_' > "$1.new/$number"
        done
        mv "$1.new" "$1"
    )
}

keystone_manage() {
    "$OPENSTACK_VENV/bin/keystone-manage" --config-file "$KEYSTONE_CONF" "$@"
}

# Tables, the administrator, and its own entry in the catalogue; done once.
make_keystone_tables() {
    local url="http://$SERVICE_HOST:$KEYSTONE_PORT/v3"
    [[ ! -e "$DATA_DIR/keystone-is-made" ]] || return 0
    keystone_manage db_sync
    OS_BOOTSTRAP_PASSWORD="$ADMIN_PASSWORD" keystone_manage bootstrap --bootstrap-region-id "$REGION_NAME" \
        --bootstrap-public-url "$url" --bootstrap-internal-url "$url" --bootstrap-admin-url "$url"
    touch "$DATA_DIR/keystone-is-made"
}

start_keystone() {
    if is_running keystone; then
        note "runs"
        return
    fi
    make_keystone_tables
    serve keystone keystone.wsgi.api:application "OS_KEYSTONE_CONFIG_DIR=$ETC_DIR/keystone"
    wait_for 120 keystone "the answer of Keystone" answers_http "http://$SERVICE_HOST:$KEYSTONE_PORT/v3"
}

stop_keystone() {
    stop_process keystone 20
}

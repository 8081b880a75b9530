#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The cloud as its users see it: logins, the commands that speak to it, and what it is given at first. To be sourced.

# Sets the environment of the stock client: login USER PROJECT
login() {
    local name
    for name in $(compgen -e OS_); do
        unset "$name"
    done
    export OS_AUTH_URL="$AUTH_URL" OS_USERNAME="$1" OS_PASSWORD="$ADMIN_PASSWORD" OS_PROJECT_NAME="$2"
    export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default OS_IDENTITY_API_VERSION=3
    export OS_REGION_NAME="$REGION_NAME"
    # A proxy is not on the way to a bridge of this machine.
    export no_proxy="$SERVICE_HOST${no_proxy:+,$no_proxy}"
}

# Runs furnish.py as the administrator: furnish people|hosts|goods ARGUMENTS...
furnish() {
    (
        login admin admin
        export SERVICE_PASSWORD COMPUTE_URL IMAGE_URL
        "$NOVA_LITE_VENV/bin/python" -P "$DEVSTACK_DIR/lib/furnish.py" "$@"
    )
}

make_people() {
    if [[ -e "$DATA_DIR/people-are-made" ]]; then
        note "there"
        return
    fi
    furnish people
    touch "$DATA_DIR/people-are-made"
}

make_goods() {
    local name files=()
    if [[ "$(cat "$DATA_DIR/goods-are-made" 2> /dev/null)" == "$GUEST_IMAGES" ]]; then
        note "there"
        return
    fi
    for name in $GUEST_IMAGES; do
        files+=("$(guest_image_file "$name")")
    done
    furnish goods "${files[@]}"
    echo "$GUEST_IMAGES" > "$DATA_DIR/goods-are-made"
}

# Commands for whoever has sourced openrc: openstack, and nova-lite-manage with the cloud's configuration.
write_commands() {
    mkdir -p "$BIN_DIR"
    ln -sfn "$NOVA_LITE_VENV/bin/openstack" "$BIN_DIR/openstack"
    cat > "$BIN_DIR/nova-lite-manage" << END
#!/bin/sh
exec "$NOVA_LITE_VENV/bin/nova-lite-manage" --config-file "$NOVA_LITE_CONF" "\$@"
END
    chmod 755 "$BIN_DIR/nova-lite-manage"
}

# Waits until the cloud's own view is that all hosts are up.
await_hosts() {
    furnish hosts "$HOSTS_OF_CLOUD"
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Glance: from PyPI, in MariaDB, images as files, served by gunicorn. To be sourced.

write_glance_config() {
    local data="$DATA_DIR/glance"
    mkdir -p "$ETC_DIR/glance" "$data/images" "$data/staging" "$data/tasks" "$data/locks"
    (
        umask 077
        {
            cat << END
# Made by devstack/stack.sh; what local.conf has for it comes last.
[DEFAULT]
use_stderr = true
enabled_backends = files:file
enabled_import_methods = []
worker_self_reference_url = $IMAGE_URL
node_staging_uri = file://$data/staging

[database]
connection = $(database_url glance)

[glance_store]
default_backend = files

[files]
filesystem_store_datadir = $data/images

[os_glance_staging_store]
filesystem_store_datadir = $data/staging

[os_glance_tasks_store]
filesystem_store_datadir = $data/tasks

[oslo_concurrency]
lock_path = $data/locks

[paste_deploy]
flavor = keystone
config_file = $OPENSTACK_VENV/etc/glance/glance-api-paste.ini

[keystone_authtoken]
www_authenticate_uri = $AUTH_URL
$(keystone_login glance)
END
            write_post_config GLANCE_API_CONF
        } | replace_file "$GLANCE_API_CONF"
        gunicorn_config "$GLANCE_PORT" > "$ETC_DIR/glance/gunicorn.conf.py"
    )
}

# Prints the options of keystoneauth1 with which a service logs in: keystone_login USER
keystone_login() {
    cat << END
auth_type = password
auth_url = $AUTH_URL
username = $1
password = $SERVICE_PASSWORD
project_name = service
user_domain_id = default
project_domain_id = default
region_name = $REGION_NAME
END
}

make_glance_tables() {
    [[ ! -e "$DATA_DIR/glance-is-made" ]] || return 0
    "$OPENSTACK_VENV/bin/glance-manage" --config-file "$GLANCE_API_CONF" db_sync
    touch "$DATA_DIR/glance-is-made"
}

start_glance() {
    if is_running glance; then
        note "runs"
        return
    fi
    make_glance_tables
    serve glance glance.wsgi.api:application "OS_GLANCE_CONFIG_DIR=$ETC_DIR/glance"
    wait_for 120 glance "the answer of Glance" answers_http "$IMAGE_URL/"
}

stop_glance() {
    stop_process glance 20
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Serving an OpenStack service with gunicorn. To be sourced.

# Adds to a configuration file what local.conf has for it: write_post_config NAME_OF_VARIABLE >> FILE
write_post_config() {
    local lines
    lines="$(local_conf_section "post-config|\$$1")"
    if grep -q '^[[:space:]]*[^#[:space:]]' <<< "$lines"; then
        printf '\n# From %s:\n%s\n' "$LOCAL_CONF" "$lines"
    fi
}

# Replaces a file by standard input if that differs, and notes that in run/changed-files: ... | replace_file FILE
replace_file() {
    local new
    new="$(cat)"
    if [[ ! -e "$1" || "$(< "$1")" != "$new" ]]; then
        printf '%s\n' "$new" > "$1.new"
        mv "$1.new" "$1"
        echo "$1" >> "$RUN_DIR/changed-files"
    fi
}

# Prints a configuration of gunicorn: gunicorn_config PORT
gunicorn_config() {
    cat << END
import sys

bind = "$SERVICE_HOST:$1"
workers = 1
threads = 8
timeout = 300
graceful_timeout = 10
accesslog = "-"


def post_fork(server, worker):
    # Keystone takes the arguments of whoever makes its application for its own.
    del sys.argv[1:]
END
}

# Starts a service: serve NAME APPLICATION VARIABLE=VALUE...
serve() {
    local name="$1" application="$2"
    shift 2
    launch "$name" env "$@" "$OPENSTACK_VENV/bin/python" -P -m gunicorn \
        --config "$ETC_DIR/$name/gunicorn.conf.py" "$application"
}

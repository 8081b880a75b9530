#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A RabbitMQ of the cloud's own: node name, ports, data and even the port mapper (epmd) are private. To be sourced.

# Prints the URL of a service, which may do what etc/rabbitmq/definitions.json lets it: transport_url SERVICE
transport_url() {
    echo "rabbit://nova_lite_$1:$RABBIT_PASSWORD@$SERVICE_HOST:$RABBIT_PORT/nova_lite"
}

# Prints the environment of the broker and of rabbitmqctl, a line each.
rabbitmq_environment() {
    local home="$DATA_DIR/rabbitmq"
    cat << END
HOME=$home
ERL_EPMD_PORT=$EPMD_PORT
ERL_EPMD_ADDRESS=127.0.0.1
RABBITMQ_CONF_ENV_FILE=/dev/null
RABBITMQ_CONFIG_FILE=$home/rabbitmq.conf
RABBITMQ_ADVANCED_CONFIG_FILE=$home/advanced.config
RABBITMQ_ENABLED_PLUGINS_FILE=$home/enabled_plugins
RABBITMQ_NODENAME=$PREFIX@localhost
RABBITMQ_NODE_IP_ADDRESS=
RABBITMQ_NODE_PORT=
RABBITMQ_DIST_PORT=$RABBIT_DIST_PORT
RABBITMQ_MNESIA_BASE=$home/mnesia
RABBITMQ_LOG_BASE=$LOGDIR/rabbitmq
RABBITMQ_PID_FILE=$home/pid
RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}
END
}

# Runs a command as RabbitMQ's user, in its environment.
as_rabbitmq() {
    local environment
    mapfile -t environment < <(rabbitmq_environment)
    setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups env "${environment[@]}" "$@"
}

# The commands behind those of /usr/sbin, which change the user themselves.
readonly RABBITMQ_BIN=/usr/lib/rabbitmq/bin

rabbitmqctl() {
    # Elixir takes the locale's encoding for a defect unless it is UTF-8.
    as_rabbitmq env LC_ALL=C.UTF-8 "$RABBITMQ_BIN/rabbitmqctl" "$@"
}

write_rabbitmq_files() {
    local home="$DATA_DIR/rabbitmq"
    install -d -o rabbitmq -g rabbitmq -m 0750 "$home" "$LOGDIR/rabbitmq"
    (
        umask 027
        cat > "$home/rabbitmq.conf" << END
listeners.tcp.1 = $SERVICE_HOST:$RABBIT_PORT
load_definitions = $home/definitions.json
disk_free_limit.absolute = 50MB
log.file.level = info
END
        rabbitmq_definitions > "$home/definitions.json"
        echo "[]." > "$home/enabled_plugins"
        [[ -s "$home/.erlang.cookie" ]] || random_password > "$home/.erlang.cookie"
        chmod 0400 "$home/.erlang.cookie"
    )
    chown -R rabbitmq:rabbitmq "$home"
}

# What the broker begins with: the users and permissions of a cloud in production, with one password here.
rabbitmq_definitions() {
    RABBIT_PASSWORD="$RABBIT_PASSWORD" python3 - "$TOP/etc/rabbitmq/definitions.json" << 'END'
import base64
import hashlib
import os
import re
import sys

salt = os.urandom(4)
digest = hashlib.sha256(salt + os.environ["RABBIT_PASSWORD"].encode()).digest()
hashed = base64.b64encode(salt + digest).decode()
with open(sys.argv[1]) as file:
    print(re.sub("@[A-Z]+_PASSWORD_HASH@", hashed, file.read()))
END
}

start_rabbitmq() {
    if is_running rabbitmq; then
        note "runs"
        return
    fi
    write_rabbitmq_files
    is_running epmd ||
        launch epmd setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups \
            epmd -port "$EPMD_PORT" -address 127.0.0.1
    wait_for 20 epmd "the answer of Erlang's port mapper" answers 127.0.0.1 "$EPMD_PORT"
    local environment
    mapfile -t environment < <(rabbitmq_environment)
    rm -f "$DATA_DIR/rabbitmq/pid"
    launch rabbitmq setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups \
        env "${environment[@]}" "$RABBITMQ_BIN/rabbitmq-server"
}

settle_rabbitmq() {
    wait_for 120 rabbitmq "the answer of RabbitMQ" answers "$SERVICE_HOST" "$RABBIT_PORT"
}

# The broker is behind the script that starts it, and writes a file of its own.
stop_rabbitmq() {
    local pid
    if is_running rabbitmq && pid="$(< "$DATA_DIR/rabbitmq/pid")" 2> /dev/null && [[ "$pid" =~ ^[0-9]+$ ]]; then
        end_pid "$pid" 60
    fi
    stop_process rabbitmq 10
    stop_process epmd 10
}

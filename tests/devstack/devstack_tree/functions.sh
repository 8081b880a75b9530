#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# DevStack's functions as a plugin finds them. Those that change the machine write down that they were called ($CALLS, a
# line each, quoted as bash does); those that answer do so as DevStack does; iniset and what builds on it write files.

record() {
    printf '%q ' "$@" >> "$CALLS"
    echo >> "$CALLS"
}

die() { # LINE MESSAGE
    echo "[ERROR] ${BASH_SOURCE[1]}:$1 ${*:2}" >&2
    exit 1
}

echo_summary() { echo "$@"; }
define_plugin() { record define_plugin "$@"; }

# --- Services: an enabled one is in a list, and one that was disabled cannot be enabled again -------------------------

is_service_enabled() {
    local service
    for service in "$@"; do
        [[ ",$ENABLED_SERVICES," == *",$service,"* ]] && return 0
    done
    return 1
}

enable_service() {
    local service
    for service in "$@"; do
        if [[ ",$DISABLED_SERVICES," == *",$service,"* ]]; then
            echo "[WARNING] Attempt to enable_service $service when it has been disabled"
        elif ! is_service_enabled "$service"; then
            ENABLED_SERVICES+=",$service"
        fi
    done
}

disable_service() {
    local service services
    for service in "$@"; do
        DISABLED_SERVICES+=",$service"
        services=",$ENABLED_SERVICES,"
        services="${services//,$service,/,}"
        services="${services#,}"
        ENABLED_SERVICES="${services%,}"
    done
}

# --- Files ------------------------------------------------------------------------------------------------------------

iniset() { # FILE SECTION OPTION VALUE
    [[ $# == 4 ]] || die "$LINENO" "iniset takes four arguments, not: $*"
    awk -v section="[$2]" -v option="$3" -v value="$4" '
        function put() { if (inside && !done) { print option " = " value; done = 1 } }
        /^\[/ { put(); inside = ($0 == section) }
        inside && $1 == option { put(); next }
        { print }
        END { put(); if (!done) print section "\n" option " = " value }
    ' "$1" > "$1.new"
    cat "$1.new" > "$1"
    rm "$1.new"
}

setup_logging() {
    iniset "$1" DEFAULT use_journal False
    iniset "$1" DEFAULT logging_context_format_string \
        "%(levelname)s %(name)s [%(global_request_id)s %(request_id)s %(project_name)s %(user_name)s] %(message)s"
}

get_transport_url() { # VHOST
    if is_service_enabled rabbit || [[ -n "${RABBIT_HOST:-}" && -n "${RABBIT_PASSWORD:-}" ]]; then
        echo "rabbit://${RABBIT_USERID:-stackrabbit}:$RABBIT_PASSWORD@${RABBIT_HOST:-$SERVICE_HOST}:${RABBIT_PORT:-5672}/$1"
    fi
}

iniset_rpc_backend() { # PACKAGE FILE SECTION VHOST
    iniset "$2" "$3" transport_url "$(get_transport_url "$4")"
}

configure_keystone_authtoken_middleware() { # FILE USER
    iniset "$1" keystone_authtoken auth_type password
    iniset "$1" keystone_authtoken interface public
    iniset "$1" keystone_authtoken auth_url "$KEYSTONE_SERVICE_URI"
    iniset "$1" keystone_authtoken username "$2"
    iniset "$1" keystone_authtoken password "$SERVICE_PASSWORD"
    iniset "$1" keystone_authtoken user_domain_name "$SERVICE_DOMAIN_NAME"
    iniset "$1" keystone_authtoken project_name "$SERVICE_PROJECT_NAME"
    iniset "$1" keystone_authtoken project_domain_name "$SERVICE_DOMAIN_NAME"
    iniset "$1" keystone_authtoken www_authenticate_uri "$KEYSTONE_SERVICE_URI"
}

# --- What answers -----------------------------------------------------------------------------------------------------

database_connection_url() {
    local where="${DATABASE_HOST:-127.0.0.1}:${DATABASE_PORT:-3306}"
    echo "mysql+pymysql://${DATABASE_USER:-root}:$DATABASE_PASSWORD@$where/$1?charset=utf8"
}

get_python_exec_prefix() { echo "$PYTHON_BIN"; }
ipv6_unquote() { echo "$1" | tr -d '[]'; }
wait_for_service() { record wait_for_service "$@"; }

# --- What changes the machine -----------------------------------------------------------------------------------------

install_package() { record install_package "$@"; }
rpc_backend_add_vhost() { record rpc_backend_add_vhost "$@"; }
recreate_database() { record recreate_database "$@"; }
create_service_user() { record create_service_user "$@"; }
get_or_create_service() { record get_or_create_service "$@"; }
get_or_create_endpoint() { record get_or_create_endpoint "$@"; }
start_tls_proxy() { record start_tls_proxy "$@"; }
openstack() { record openstack "$@"; }

setup_develop() { # DIRECTORY [EXTRAS]
    [[ -e "$1/setup.cfg" ]] || die "$LINENO" "setup_develop: no project in $1"
    record setup_develop "$@"
}

# run_process SERVICE COMMAND [GROUP [USER [ENVIRONMENT]]]: DevStack makes a systemd unit of it.
run_process() {
    local program="${2%% *}"
    [[ "$2" == /* && "$2" != *sudo* ]] || die "$LINENO" "run_process: not a command for systemd: $2"
    [[ -x "$program" ]] || die "$LINENO" "run_process: there is no program $program"
    is_service_enabled "$1" || die "$LINENO" "run_process: $1 is not enabled"
    record run_process "$@"
}

stop_process() {
    ! is_service_enabled "$1" || record stop_process "$@"
}

# Files are DevStack's user's own here; the rest of the machine is left alone.
sudo() {
    case "$1" in
        install)
            record sudo "$@"
            shift
            local kept=()
            while (($#)); do
                if [[ "$1" == -o ]]; then
                    shift
                else
                    kept+=("$1")
                fi
                shift
            done
            command install "${kept[@]}"
            ;;
        rm) record sudo "$@" && command "$@" ;;
        virsh)
            if [[ "$2" == list ]]; then
                cat "$DEST/domains" 2> /dev/null || true
            else
                record sudo "$@"
            fi
            ;;
        ip)
            record sudo "$@"
            [[ "$2 $3" != "link add" ]] || touch "$DEST/link-$5"
            [[ "$2 $3" != "link delete" ]] || rm "$DEST/link-$4"
            ;;
        *) record sudo "$@" ;;
    esac
}

ip() {
    [[ "$1 $2" == "link show" ]] || die "$LINENO" "changes the machine's network without sudo: ip $*"
    [[ -e "$DEST/link-$3" ]]
}

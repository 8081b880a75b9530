#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The DevStack plugin: nova_lite in the place of Nova, beside DevStack's Keystone, Glance, RabbitMQ and database.
#
# DevStack sources it as "plugin.sh MODE [PHASE]" with its own functions at hand (iniset, run_process, ...); it has
# nothing in common with stack.sh beside it, which makes a cloud without DevStack. Services: nl-api, nl-cond, nl-sch,
# nl-novnc and nl-cpu; see settings. A node with nl-cpu alone never sees a login at the database.

_XTRACE_NOVA_LITE=$(set +o | grep xtrace)
set +o xtrace

# Where pip puts commands: DevStack's own virtual environment, this project's, or the system's.
function nova_lite_bin_dir {
    if [[ "${USE_VENV:-False}" == True ]]; then
        echo "$NOVA_LITE_DIR.venv/bin"
    else
        get_python_exec_prefix
    fi
}

function nova_lite_manage {
    "$(nova_lite_bin_dir)/nova-lite-manage" --config-file "$@"
}

function is_nova_lite_control_node {
    is_service_enabled nl-api || is_service_enabled nl-cond || is_service_enabled nl-sch ||
        is_service_enabled nl-novnc
}

function uses_nova_lite_libvirt {
    is_service_enabled nl-cpu && [[ "$VIRT_DRIVER" == libvirt ]]
}

# The proxy is on this node: that of the api has it, unless it is fake guests that nobody can look at.
function shows_nova_lite_screens {
    is_service_enabled nl-novnc && [[ "$VIRT_DRIVER" == libvirt ]]
}

# Prints the base of the URL under which clients reach the api.
function nova_lite_url {
    local protocol=$SERVICE_PROTOCOL
    if is_service_enabled tls-proxy; then
        protocol=https
    fi
    echo "$protocol://$SERVICE_HOST:$NOVA_LITE_PORT"
}

# --- pre-install and install ------------------------------------------------------------------------------------------

function check_nova_lite_settings {
    case "$VIRT_DRIVER" in
        libvirt | fake) ;;
        *) die $LINENO "VIRT_DRIVER=$VIRT_DRIVER: nova_lite has the drivers libvirt and fake; set one in local.conf" ;;
    esac
    case "$NOVA_LITE_NETWORK" in
        bridge | none) ;;
        *) die $LINENO "NOVA_LITE_NETWORK=$NOVA_LITE_NETWORK: set bridge or none in local.conf" ;;
    esac
    if is_nova_lite_control_node && [[ -z "${DATABASE_TYPE:-}" ]]; then
        die $LINENO "nl-api, nl-cond, nl-sch and nl-novnc need the database: enable the service mysql, or set DATABASE_TYPE and" \
            "DATABASE_HOST to the controller's"
    fi
    if [[ -z "$(get_transport_url "$NOVA_LITE_VHOST")" ]]; then
        die $LINENO "nova_lite needs RabbitMQ: enable the service rabbit, or set RABBIT_HOST and RABBIT_PASSWORD to the" \
            "controller's"
    fi
}

# DevStack brings them in for Nova alone.
function load_libvirt_functions {
    # shellcheck source=/dev/null
    source "$TOP_DIR/lib/nova_plugins/functions-libvirt"
}

function install_nova_lite_system {
    if uses_nova_lite_libvirt; then
        load_libvirt_functions
        install_libvirt
        install_package qemu-utils
    fi
    if is_service_enabled nl-novnc; then
        install_package novnc
    fi
}

function install_nova_lite {
    local extras=
    if uses_nova_lite_libvirt; then
        extras=libvirt
    fi
    if [[ "${USE_VENV:-False}" == True ]]; then
        # shellcheck disable=SC2034  # DevStack's table of virtual environments
        PROJECT_VENV["$(basename "$NOVA_LITE_DIR")"]="$NOVA_LITE_DIR.venv"
    fi
    setup_develop "$NOVA_LITE_DIR" $extras
}

# --- post-config ------------------------------------------------------------------------------------------------------

function configure_nova_lite {
    sudo install -d -o "$STACK_USER" -m 755 "$NOVA_LITE_CONF_DIR" "$NOVA_LITE_STATE_PATH"
    if is_nova_lite_control_node; then
        configure_nova_lite_control
    fi
    if is_service_enabled nl-cpu; then
        configure_nova_lite_compute
    fi
    if uses_nova_lite_libvirt; then
        load_libvirt_functions
        configure_libvirt
        configure_nova_lite_bridge
    fi
    if is_service_enabled rabbit; then
        rpc_backend_add_vhost "$NOVA_LITE_VHOST"
    fi
    if is_service_enabled nl-api; then
        create_nova_lite_accounts
    fi
}

# Makes a file that only DevStack's user can read, with what every service needs.
function create_nova_lite_conf { # FILE
    install -m 600 /dev/null "$1"
    iniset "$1" DEFAULT debug "${ENABLE_DEBUG_LOG_LEVEL:-False}"
    iniset "$1" DEFAULT state_path "$NOVA_LITE_STATE_PATH"
    iniset_rpc_backend nova_lite "$1" DEFAULT "$NOVA_LITE_VHOST"
    iniset "$1" compute driver "$VIRT_DRIVER"
    iniset "$1" image driver glance
    configure_nova_lite_glance "$1"
    configure_nova_lite_network "$1"
    setup_logging "$1"
}

# The same everywhere, for api and conductor hand out what computes plug in.
function configure_nova_lite_network { # FILE
    if [[ "$NOVA_LITE_NETWORK" == none ]]; then
        return
    fi
    if [[ "$VIRT_DRIVER" == fake ]]; then
        iniset "$1" network driver fake
    else
        iniset "$1" network driver bridge
        iniset "$1" network bridge "$NOVA_LITE_BRIDGE"
    fi
    iniset "$1" network subnet "$NOVA_LITE_SUBNET"
}

# The service's login with which images are fetched.
function configure_nova_lite_glance { # FILE
    iniset "$1" glance auth_type password
    iniset "$1" glance auth_url "$KEYSTONE_SERVICE_URI"
    iniset "$1" glance username nova
    iniset "$1" glance password "$SERVICE_PASSWORD"
    iniset "$1" glance user_domain_name "$SERVICE_DOMAIN_NAME"
    iniset "$1" glance project_name "$SERVICE_PROJECT_NAME"
    iniset "$1" glance project_domain_name "$SERVICE_DOMAIN_NAME"
    iniset "$1" glance region_name "$REGION_NAME"
    # DevStack's catalogue has public endpoints only.
    iniset "$1" glance valid_interfaces public
    if is_service_enabled tls-proxy; then
        iniset "$1" glance cafile "$SSL_BUNDLE_FILE"
    fi
}

function configure_nova_lite_control {
    local port=$NOVA_LITE_PORT
    if is_service_enabled tls-proxy; then
        port=$NOVA_LITE_PORT_INT
    fi
    create_nova_lite_conf "$NOVA_LITE_CONF"
    iniset "$NOVA_LITE_CONF" database connection "$(nova_lite_database_url)"
    iniset "$NOVA_LITE_CONF" api listen "$(ipv6_unquote "$SERVICE_LISTEN_ADDRESS")"
    iniset "$NOVA_LITE_CONF" api port "$port"
    iniset "$NOVA_LITE_CONF" api public_url "$(nova_lite_url)"
    iniset "$NOVA_LITE_CONF" api workers "$NOVA_LITE_API_WORKERS"
    iniset "$NOVA_LITE_CONF" conductor workers "$NOVA_LITE_CONDUCTORS"
    iniset "$NOVA_LITE_CONF" scheduler workers "$NOVA_LITE_SCHEDULERS"
    iniset "$NOVA_LITE_CONF" novnc enabled "$(shows_nova_lite_screens && echo True || echo False)"
    iniset "$NOVA_LITE_CONF" novnc listen "$(ipv6_unquote "$SERVICE_LISTEN_ADDRESS")"
    iniset "$NOVA_LITE_CONF" novnc port "$NOVA_LITE_NOVNC_PORT"
    iniset "$NOVA_LITE_CONF" novnc base_url "http://$SERVICE_HOST:$NOVA_LITE_NOVNC_PORT/vnc_lite.html"
    iniset "$NOVA_LITE_CONF" auth strategy keystone
    configure_keystone_authtoken_middleware "$NOVA_LITE_CONF" nova
}

# DevStack asks for MySQL's utf8, in which names cannot have every letter.
function nova_lite_database_url {
    database_connection_url "$NOVA_LITE_DATABASE" | sed -E 's/charset=utf8(&|$)/charset=utf8mb4\1/'
}

function configure_nova_lite_compute {
    create_nova_lite_conf "$NOVA_LITE_CPU_CONF"
    if [[ "$VIRT_DRIVER" == fake ]]; then
        configure_nova_lite_fake
    else
        configure_nova_lite_libvirt
    fi
}

function configure_nova_lite_fake {
    local name
    name=$(hostname)
    if ((${NUMBER_FAKE_NOVA_COMPUTE:-1} > 1)); then
        name="$name-[1-$NUMBER_FAKE_NOVA_COMPUTE]"
    fi
    iniset "$NOVA_LITE_CPU_CONF" fake hosts "$name"
}

function configure_nova_lite_libvirt {
    if [[ "$LIBVIRT_TYPE" == kvm && ! -e /dev/kvm ]]; then
        echo "WARNING: there is no /dev/kvm, so guests are emulated (LIBVIRT_TYPE=qemu)"
        LIBVIRT_TYPE=qemu
    fi
    iniset "$NOVA_LITE_CPU_CONF" libvirt virt_type "$LIBVIRT_TYPE"
    if [[ -n "${LIBVIRT_CPU_MODE:-}" ]]; then
        iniset "$NOVA_LITE_CPU_CONF" libvirt cpu_mode "$LIBVIRT_CPU_MODE"
    fi
    if [[ "${LIBVIRT_CPU_MODE:-}" == custom ]]; then
        # shellcheck disable=SC2153  # not the mode, but DevStack's setting beside it
        iniset "$NOVA_LITE_CPU_CONF" libvirt cpu_model "$LIBVIRT_CPU_MODEL"
    fi
    # Hosts reach each other by ssh, as DevStack's guide to several nodes sets it up.
    iniset "$NOVA_LITE_CPU_CONF" libvirt live_migration_uri "qemu+ssh://$STACK_USER@%s/system"
    iniset "$NOVA_LITE_CPU_CONF" libvirt live_migration_inbound_addr "$(ipv6_unquote "$HOST_IP")"
    iniset "$NOVA_LITE_CPU_CONF" libvirt host_ip "$(ipv6_unquote "$HOST_IP")"
    # Screens have no password: they are served where the proxy is, or else to its node.
    if is_service_enabled nl-novnc; then
        iniset "$NOVA_LITE_CPU_CONF" libvirt vnc_listen "${VNCSERVER_LISTEN:-127.0.0.1}"
    else
        iniset "$NOVA_LITE_CPU_CONF" libvirt vnc_listen "${VNCSERVER_LISTEN:-$(ipv6_unquote "$HOST_IP")}"
    fi
}

function configure_nova_lite_bridge {
    if [[ "$NOVA_LITE_NETWORK" != bridge ]]; then
        return
    fi
    if ! ip link show "$NOVA_LITE_BRIDGE" > /dev/null 2>&1; then
        sudo ip link add name "$NOVA_LITE_BRIDGE" type bridge
    fi
    sudo ip link set "$NOVA_LITE_BRIDGE" up
    if [[ -n "$NOVA_LITE_BRIDGE_INTERFACE" ]]; then
        sudo ip link set "$NOVA_LITE_BRIDGE_INTERFACE" master "$NOVA_LITE_BRIDGE" up
    fi
    if is_service_enabled nl-api; then
        sudo ip address replace "$(nova_lite_gateway)" dev "$NOVA_LITE_BRIDGE"
    fi
}

# Prints the subnet's first address, with its prefix.
function nova_lite_gateway {
    python3 -c 'import ipaddress, sys
subnet = ipaddress.ip_network(sys.argv[1])
print(f"{subnet[1]}/{subnet.prefixlen}")' "$NOVA_LITE_SUBNET"
}

function create_nova_lite_accounts {
    # admin, since compute hosts fetch the private images of every project.
    create_service_user nova admin
    get_or_create_service nova compute "Compute service (nova_lite)"
    get_or_create_endpoint compute "$REGION_NAME" "$(nova_lite_url)/v2.1"
}

# --- extra ------------------------------------------------------------------------------------------------------------

# What local.conf adds to the files is in them by now.
function check_nova_lite_conf {
    local file
    for file in "$NOVA_LITE_CONF" "$NOVA_LITE_CPU_CONF"; do
        if [[ -e "$file" ]] && ! nova_lite_manage "$file" config check; then
            die $LINENO "$file has the problems above; mend them where local.conf adds to the file"
        fi
    done
}

# Whichever node has the api makes the schema.
function init_nova_lite {
    check_nova_lite_conf
    if is_service_enabled nl-api; then
        recreate_database "$NOVA_LITE_DATABASE"
        nova_lite_manage "$NOVA_LITE_CONF" db sync
    fi
}

function start_nova_lite {
    local bin
    bin=$(nova_lite_bin_dir)
    if is_service_enabled nl-cond; then
        run_process nl-cond "$bin/nova-lite-conductor --config-file $NOVA_LITE_CONF"
    fi
    if is_service_enabled nl-sch; then
        run_process nl-sch "$bin/nova-lite-scheduler --config-file $NOVA_LITE_CONF"
    fi
    if is_service_enabled nl-api; then
        start_nova_lite_api "$bin"
    fi
    if shows_nova_lite_screens; then
        run_process nl-novnc "$bin/nova-lite-novncproxy --config-file $NOVA_LITE_CONF"
    fi
    if uses_nova_lite_libvirt; then
        # root, for disks and console logs are QEMU's and libvirt's while guests run; etc/systemd has a finer way.
        run_process nl-cpu "$bin/nova-lite-compute --config-file $NOVA_LITE_CPU_CONF" "$LIBVIRT_GROUP" root
    elif is_service_enabled nl-cpu; then
        run_process nl-cpu "$bin/nova-lite-compute --config-file $NOVA_LITE_CPU_CONF"
    fi
}

function start_nova_lite_api { # DIRECTORY OF COMMANDS
    run_process nl-api "$1/nova-lite-api --config-file $NOVA_LITE_CONF"
    if is_service_enabled tls-proxy; then
        start_tls_proxy nova-lite '*' "$NOVA_LITE_PORT" "$SERVICE_HOST" "$NOVA_LITE_PORT_INT"
    fi
    if ! wait_for_service "$SERVICE_TIMEOUT" "$(nova_lite_url)/"; then
        die $LINENO "nova-lite-api did not answer at $(nova_lite_url)/; see journalctl -u devstack@nl-api"
    fi
    create_nova_lite_flavors
}

# Those that DevStack makes for Nova, with the same ids: Tempest and habits know them.
function create_nova_lite_flavors {
    local name id ram disk vcpus
    while read -r name id ram disk vcpus; do
        openstack --os-cloud devstack-admin flavor create --id "$id" --ram "$ram" --disk "$disk" --vcpus "$vcpus" \
            "$name" < /dev/null
    done << 'END_OF_FLAVORS'
m1.nano 42 192 1 1
m1.micro 84 256 1 1
m1.tiny 1 512 1 1
m1.small 2 2048 20 1
m1.medium 3 4096 40 2
m1.large 4 8192 80 4
m1.xlarge 5 16384 160 8
END_OF_FLAVORS
}

# --- test-config ------------------------------------------------------------------------------------------------------

# DevStack tells Tempest of a compute service only when that is Nova.
function configure_nova_lite_tempest {
    local feature
    iniset "$TEMPEST_CONFIG" service_available nova True
    iniset "$TEMPEST_CONFIG" compute flavor_ref 42
    iniset "$TEMPEST_CONFIG" compute flavor_ref_alt 84
    iniset "$TEMPEST_CONFIG" compute min_microversion 2.1
    iniset "$TEMPEST_CONFIG" compute max_microversion latest
    for feature in resize cold_migration live_migration block_migration_for_live_migration \
        live_migrate_back_and_forth pause suspend shelve shelve_migrate rescue snapshot console_output vnc_console \
        personality config_drive disk_config enable_instance_password; do
        iniset "$TEMPEST_CONFIG" compute-feature-enabled "$feature" True
    done
    for feature in stable_rescue change_password interface_attach; do
        iniset "$TEMPEST_CONFIG" compute-feature-enabled "$feature" False
    done
    # Guests are in nova_lite's own network, which Tempest does not know how to reach.
    iniset "$TEMPEST_CONFIG" validation run_validation False
}

# --- unstack and clean ------------------------------------------------------------------------------------------------

# What takes requests in stops first, what the others report to last.
function stop_nova_lite {
    local service
    for service in nl-novnc nl-api nl-cpu nl-sch nl-cond; do
        stop_process "$service"
    done
}

function clean_nova_lite {
    if uses_nova_lite_libvirt; then
        remove_nova_lite_guests
        if [[ "$NOVA_LITE_NETWORK" == bridge ]] && ip link show "$NOVA_LITE_BRIDGE" > /dev/null 2>&1; then
            sudo ip link delete "$NOVA_LITE_BRIDGE" type bridge
        fi
    fi
    if is_service_enabled rabbit; then
        sudo rabbitmqctl delete_vhost "$NOVA_LITE_VHOST" || true
    fi
    sudo rm -rf "${NOVA_LITE_STATE_PATH:?}" "${NOVA_LITE_CONF_DIR:?}"
}

# Nova names its domains instance- and a number, nova_lite instance- and the server's id.
function remove_nova_lite_guests {
    local name
    for name in $(sudo virsh list --all --name | grep -E '^instance-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'); do
        sudo virsh destroy "$name" || true
        sudo virsh undefine "$name" --managed-save --snapshots-metadata --nvram || true
    done
}

# --- What DevStack asks for -------------------------------------------------------------------------------------------

function run_nova_lite_phase { # MODE [PHASE]
    if ! is_nova_lite_control_node && ! is_service_enabled nl-cpu; then
        return
    fi
    case "$*" in
        "stack pre-install")
            check_nova_lite_settings
            echo_summary "Installing what nova_lite needs of the system"
            install_nova_lite_system
            ;;
        "stack install")
            echo_summary "Installing nova_lite"
            install_nova_lite
            ;;
        "stack post-config")
            echo_summary "Configuring nova_lite"
            configure_nova_lite
            ;;
        "stack extra")
            echo_summary "Starting nova_lite"
            init_nova_lite
            start_nova_lite
            ;;
        "stack test-config")
            if is_service_enabled tempest; then
                echo_summary "Telling Tempest of nova_lite"
                configure_nova_lite_tempest
            fi
            ;;
        unstack) stop_nova_lite ;;
        clean) clean_nova_lite ;;
    esac
}

run_nova_lite_phase "$@"

$_XTRACE_NOVA_LITE

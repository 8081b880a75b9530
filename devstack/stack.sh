#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A cloud of several hosts on one machine, made by one command. See "devstack/stack.sh --help".

set -euo pipefail
TOP="$(dirname "$(dirname "$(readlink -f "$0")")")"
# shellcheck source=/dev/null
source "$TOP/devstack/lib/parts.sh"

usage() {
    cat << END
Usage: devstack/stack.sh

Makes a cloud as devstack/local.conf says it (or \$NOVA_LITE_LOCAL_CONF): RabbitMQ, MariaDB, Keystone, Glance, the
control plane of nova_lite, and compute hosts, each with a network, a libvirt and a nova-lite-compute of its own. It
needs root on Debian 12 and installs what is missing. Running it again starts what does not run, and touches nothing
else.

Then: source devstack/openrc admin; devstack/status; devstack/host n1 power-off; devstack/unstack.sh
END
}

write_configuration() {
    rm -f "$RUN_DIR/changed-files"
    if is_true "$ENABLE_KEYSTONE"; then
        write_keystone_config
        write_glance_config
    fi
    write_nova_lite_config
    write_commands
    [[ -e "$RUN_DIR/changed-files" ]] || return 0
    nova_lite_manage config check
    if is_running nova-lite-api; then
        note "changed, but what runs has read the old one: unstack.sh, then stack.sh, to begin anew"
    fi
}

summary() {
    cat >&3 << END

The cloud runs: $HOSTS $VIRT_DRIVER host$( ((HOSTS == 1)) || echo s), $CONDUCTORS conductors, $SCHEDULERS schedulers.

  Compute API     $COMPUTE_URL
  Identity        $AUTH_URL
  Users           admin and demo, with the ADMIN_PASSWORD of $ETC_DIR/passwords
  Networks        $MGMT_RANGE between the hosts ($MGMT_BRIDGE), $GUEST_RANGE for guests ($GUEST_BRIDGE)
  Logs            $LOGDIR

  source devstack/openrc admin
  openstack hypervisor list
  openstack server create --flavor m1.nano --image nano --wait first
  devstack/status
END
}

main() {
    case "${1:-}" in
        "") ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    must_be_root
    read_settings
    check_dest
    mkdir -p "$DEST" "$ETC_DIR" "$DATA_DIR" "$LOGDIR" "$RUN_DIR" "$CACHE_DIR"
    lock_dest
    local steps=14
    is_true "$ENABLE_KEYSTONE" || steps=10
    echo "A cloud of $HOSTS $VIRT_DRIVER hosts in $DEST; what is done goes to $LOGDIR/stack.log"
    begin_steps "$steps" "$LOGDIR/stack.log"
    step "Debian packages" install_packages
    step "nova_lite's Python packages" install_nova_lite
    ! is_true "$ENABLE_KEYSTONE" || step "Keystone's and Glance's packages" install_openstack
    step "Guest images" build_guest_images
    step "Networks" make_networks
    choose_passwords
    choose_ports
    step "Starting RabbitMQ and MariaDB" start_bus_and_database
    step "Configuration" write_configuration
    step "Hosts" start_hosts
    if is_true "$ENABLE_KEYSTONE"; then
        step "Keystone" start_keystone
        step "Users and catalogue" make_people
        step "Glance" start_glance
    fi
    step "nova_lite: api, conductors, schedulers" start_nova_lite
    step "nova_lite: computes" start_and_await_computes
    step "Flavors and images" make_goods
    summary
}

start_bus_and_database() {
    start_rabbitmq
    start_mariadb
    settle_mariadb
    settle_rabbitmq
}

start_and_await_computes() {
    start_computes
    [[ "$STEP_NOTE" == run ]] || await_hosts
}

main "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compute hosts: each is a set of namespaces (network, mount, PID, UTS, IPC) with a libvirtd and a nova-lite-compute of
# its own in it. To be sourced.
#
# A host hangs on two cables, which are veth pairs: eth0 is on the management network, eth1 is a port of its bridge
# br-guest on the guest network. Its folder data/hosts/NAME is its disk, and stays when its power is cut.

host_dir() {
    echo "$DATA_DIR/hosts/$1"
}

# Prints the number in a host's name.
host_number() {
    echo "${1#"$HOST_PREFIX"}"
}

# Hosts' addresses begin at 11 in both networks: host_address HOST
host_address() {
    address_in "$MGMT_RANGE" $((10 + $(host_number "$1")))
}

guest_network_address() {
    address_in "$GUEST_RANGE" $((10 + $(host_number "$1")))
}

has_libvirt() {
    [[ "$VIRT_DRIVER" == libvirt ]]
}

# --- A host's disk --------------------------------------------------------------------------------------------------

# Writes what a host finds on its disk; its identity is made once.
write_host_files() { # HOST
    local dir
    dir="$(host_dir "$1")"
    mkdir -p "$dir/etc" "$dir/state"
    [[ -s "$dir/etc/machine-id" ]] || tr -d - < /proc/sys/kernel/random/uuid > "$dir/etc/machine-id"
    hosts_file > "$dir/etc/hosts"
    if has_libvirt; then
        write_libvirt_files "$1" "$dir"
    fi
    (
        umask 077
        {
            echo "# Made by devstack/stack.sh; what local.conf has for it comes last."
            nova_lite_common_config "$1" "$dir/state" compute
            compute_config "$1" "$dir"
            write_post_config NOVA_LITE_CONF
            write_post_config NOVA_LITE_CPU_CONF
        } | replace_file "$dir/etc/nova-lite.conf"
    )
}

hosts_file() {
    local name
    echo "127.0.0.1 localhost"
    for name in $(host_names); do
        echo "$(host_address "$name") $name"
    done
}

write_libvirt_files() { # HOST DIRECTORY
    local libvirt="$2/libvirt" name
    mkdir -p "$libvirt/etc" "$libvirt/lib" "$libvirt/log" "$libvirt/cache" "$libvirt/run"
    [[ -s "$2/etc/host-uuid" ]] || cat /proc/sys/kernel/random/uuid > "$2/etc/host-uuid"
    cat > "$libvirt/etc/libvirtd.conf" << END
host_uuid = "$(< "$2/etc/host-uuid")"
listen_tls = 0
listen_tcp = 1
listen_addr = "$(host_address "$1")"
auth_tcp = "none"
auth_unix_rw = "none"
auth_unix_ro = "none"
unix_sock_rw_perms = "0700"
log_outputs = "2:file:/var/log/libvirt/libvirtd.log"
# A host that is lost is noticed within seconds.
keepalive_interval = 1
keepalive_count = 4
END
    cat > "$libvirt/etc/qemu.conf" << END
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
max_core = 0
migration_host = "$(host_address "$1")"
keepalive_interval = 1
keepalive_count = 4
END
    # libvirtd looks this user up before it reads its settings; the machine need not have it.
    for name in passwd group; do
        cp "/etc/$name" "$2/etc/$name"
    done
    grep -q ^libvirt-qemu: "$2/etc/passwd" ||
        echo "libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin" >> "$2/etc/passwd"
    grep -q ^libvirt-qemu: "$2/etc/group" || echo "libvirt-qemu:x:64055:" >> "$2/etc/group"
    # What QEMU can do is asked once per machine, which takes a while.
    if [[ -d "$CACHE_DIR/qemu" && ! -d "$libvirt/cache/qemu" ]]; then
        cp -a "$CACHE_DIR/qemu" "$libvirt/cache/qemu"
    fi
}

instances_path() { # HOST
    if [[ "$LIVE_MIGRATION" == shared ]]; then
        echo "$DATA_DIR/instances"
    else
        echo "$(host_dir "$1")/instances"
    fi
}

compute_config() { # HOST DIRECTORY
    if has_libvirt; then
        libvirt_compute_config "$1"
    else
        fake_compute_config "$1"
    fi
}

libvirt_compute_config() { # HOST
    local address instances
    address="$(host_address "$1")"
    instances="$(instances_path "$1")"
    mkdir -p "$instances"
    cat << END
[compute]
instances_path = $instances
cpu_allocation_ratio = 16
force_config_drive = true
$(shares_of_machine "$instances")

[libvirt]
virt_type = $LIBVIRT_TYPE
connection_uri = qemu:///system
live_migration_inbound_addr = $address
live_migration_unsafe = $([[ "$LIVE_MIGRATION" == shared ]] && echo true || echo false)
host_ip = $address
vnc_listen = $address

END
}

# The hosts share one machine: each keeps what belongs to the others for itself, so that nothing is sold twice. How much
# that is was decided once, since what is free changes.
shares_of_machine() { # DIRECTORY
    local memory_mb total_gb free_gb
    if [[ ! -s "$ETC_DIR/shares" ]]; then
        memory_mb="$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)"
        read -r total_gb free_gb < <(df --block-size=G --output=size,avail "$1" | tail -n 1 | tr -d G)
        {
            echo "reserved_host_memory_mb = $((memory_mb - memory_mb * 3 / 4 / HOSTS))"
            echo "reserved_host_disk_gb = $((total_gb - free_gb / HOSTS))"
        } > "$ETC_DIR/shares"
    fi
    cat "$ETC_DIR/shares"
}

fake_compute_config() { # HOST
    local nodes="$1"
    [[ "$FAKE_NODES" == 1 ]] || nodes="$1-[1-$FAKE_NODES]"
    cat << END
[fake]
hosts = $nodes
vcpus = $FAKE_VCPUS
memory_mb = $FAKE_MEMORY_MB
domains_path = $DATA_DIR/fake-domains
shared_disks = $([[ "$LIVE_MIGRATION" == shared ]] && echo true || echo false)
control_file = $DATA_DIR/fake-faults.json

END
}

# --- Power and cables -----------------------------------------------------------------------------------------------

# Prints the id of a host's first process, as seen from outside.
host_pid() {
    process_pid "host-$1"
}

# Runs a command in a host: in_host HOST COMMAND ARGUMENTS...
in_host() {
    local pid
    pid="$(host_pid "$1")" || die "host $1 is off; devstack/host $1 power-on"
    shift
    # In a chroot, the root of the host is not that of its mounts.
    nsenter --target="$pid" --mount --uts --ipc --net --pid --root --wd -- "$@"
}

# Makes the namespaces and plugs the cables in.
boot_host() { # HOST
    local dir keeper pid
    dir="$(host_dir "$1")"
    # The package leaves some of its own folders to its units; in them is nothing, each host mounts its own there.
    ! has_libvirt || mkdir -p /etc/libvirt /var/lib/libvirt /var/log/libvirt /var/cache/libvirt
    rm -f "$dir/mounted"
    launch "keeper-$1" unshare --net --mount --uts --ipc --pid --fork --kill-child --mount-proc \
        bash "$DEVSTACK_DIR/lib/host_init.sh" "$dir" "$1"
    wait_for 30 "keeper-$1" "the start of host $1" test -e "$dir/mounted"
    keeper="$(process_pid "keeper-$1")"
    pid="$(< "/proc/$keeper/task/$keeper/children")"
    record_process "host-$1" "${pid%% *}"
    plug_in "$1" "$MGMT_PORT" "$MGMT_BRIDGE" eth0
    plug_in "$1" "$GUEST_PORT" "$GUEST_BRIDGE" eth1
    in_host "$1" ip address add "$(host_address "$1")/${MGMT_RANGE#*/}" dev eth0
    in_host "$1" ip link add br-guest type bridge forward_delay 0
    in_host "$1" ip link set eth1 master br-guest
    in_host "$1" ip address add "$(guest_network_address "$1")/${GUEST_RANGE#*/}" dev br-guest
    in_host "$1" ip link set br-guest up
}

plug_in() { # HOST PORT BRIDGE INTERFACE
    local port pid
    port="$(port_of "$1" "$2")"
    pid="$(host_pid "$1")"
    remove_port "$port"
    ip link add "$port" type veth peer name "$4" netns "$pid"
    ip link set "$port" master "$3" up
    in_host "$1" ip link set "$4" up
}

# Removes a port, and what makes it slow (cables.sh).
remove_port() { # PORT
    stop_process "slow-$1" 5
    ! link_exists "$1-s" || ip link delete "$1-s"
    ! link_exists "$1" || ip link delete "$1"
}

# Ends a host and everything in it at once.
kill_host() { # HOST
    local pid port
    for port in "$MGMT_PORT" "$GUEST_PORT"; do
        port="$(port_of "$1" "$port")"
        # With the cable cut first, nobody hears of it, as when power is lost.
        ! link_exists "$port" || ip link set "$port" down
    done
    if pid="$(host_pid "$1")"; then
        end_pid "$pid" 30 KILL
    fi
    stop_process "keeper-$1" 30
    rm -f "$RUN_DIR/host-$1.pid"
    for port in "$MGMT_PORT" "$GUEST_PORT"; do
        remove_port "$(port_of "$1" "$port")"
    done
}

# --- What runs in a host --------------------------------------------------------------------------------------------

# A program in a host is a child of the host's first process; it is found by its name: host_program_pid HOST NAME
host_program_pid() {
    local init child name
    init="$(host_pid "$1")" || return 1
    for child in $(< "/proc/$init/task/$init/children"); do
        { name="$(tr '\0' ' ' < "/proc/$child/cmdline")"; } 2> /dev/null || continue
        if [[ " $name" == *"/$2 "* ]]; then
            echo "$child"
            return 0
        fi
    done
    return 1
}

# Starts a program in a host, detached: launch_in_host HOST NAME COMMAND ARGUMENTS...
launch_in_host() {
    local host="$1" name="$2" length pid
    local log="$LOGDIR/$2-$1.log"
    shift 2
    length="$(log_length "$name-$host")"
    trace "launch $name in $host: $*"
    # The shell ends, so that the program becomes a child of the host's first process. Its words are not ours to expand.
    # shellcheck disable=SC2016
    in_host "$host" env "$MARK=$DEST" sh -c 'log="$1"; shift; setsid "$@" < /dev/null >> "$log" 2>&1 3>&- 9>&- &' \
        sh "$log" "$@"
    wait_for 10 "" "the start of $name in $host" host_program_pid "$host" "$name" > /dev/null
    pid="$(host_program_pid "$host" "$name")" || die "$name in $host ended at once; see $log"
    record_process "$name-$host" "$pid" "$length" || die "$name in $host ended at once; see $log"
}

start_libvirtd() { # HOST
    launch_in_host "$1" libvirtd /usr/sbin/libvirtd --listen
}

libvirtd_answers() { # HOST
    in_host "$1" virsh --quiet --connect qemu:///system version > /dev/null 2>&1
}

start_compute() { # HOST
    launch_in_host "$1" nova-lite-compute "$NOVA_LITE_VENV/bin/nova-lite-compute" \
        --config-file "$(host_dir "$1")/etc/nova-lite.conf"
}

settle_compute() { # HOST
    wait_for 90 "nova-lite-compute-$1" "the start of nova-lite-compute in $1" has_started "nova-lite-compute-$1"
}

# --- All hosts ------------------------------------------------------------------------------------------------------

# Starts what does not run of a host, and does not wait: start_host HOST
start_host() {
    if ! host_pid "$1" > /dev/null; then
        kill_host "$1"
        write_host_files "$1"
        boot_host "$1"
    fi
    if has_libvirt && ! is_running "libvirtd-$1"; then
        start_libvirtd "$1"
    fi
}

start_hosts() {
    local name started=0
    for name in $(host_names); do
        if ! host_pid "$name" > /dev/null || { has_libvirt && ! is_running "libvirtd-$name"; }; then
            start_host "$name"
            started=$((started + 1))
        fi
        # The first one asks QEMU what it can do; the others are told.
        if has_libvirt && [[ ! -d "$CACHE_DIR/qemu" ]]; then
            learn_capabilities "$name"
        fi
    done
    if ((started == 0)); then
        note "run"
    else
        note "$started started"
    fi
}

learn_capabilities() { # HOST
    wait_for 60 "libvirtd-$1" "the answer of libvirt in $1" libvirtd_answers "$1"
    in_host "$1" virsh --quiet --connect qemu:///system capabilities > /dev/null
    mkdir -p "$CACHE_DIR"
    cp -a "$(host_dir "$1")/libvirt/cache/qemu" "$CACHE_DIR/qemu"
}

start_computes() {
    local name started=()
    for name in $(host_names); do
        if ! is_running "nova-lite-compute-$name"; then
            ! has_libvirt ||
                wait_for 60 "libvirtd-$name" "the answer of libvirt in $name" libvirtd_answers "$name"
            start_compute "$name"
            started+=("$name")
        fi
    done
    for name in "${started[@]}"; do
        settle_compute "$name"
    done
    if [[ ${#started[@]} -eq 0 ]]; then
        note "run"
    fi
}

# Prints the names of hosts that have been made, also those that the settings do not name any more.
made_hosts() {
    local path
    for path in "$DATA_DIR"/hosts/*; do
        [[ ! -d "$path" ]] || basename "$path"
    done
}

# Prints the names of all processes that a healthy cloud has.
stack_processes() {
    local name
    echo epmd rabbitmq mariadb
    ! is_true "$ENABLE_KEYSTONE" || echo keystone glance
    control_processes
    for name in $(host_names); do
        echo "host-$name"
        ! has_libvirt || echo "libvirtd-$name"
        echo "nova-lite-compute-$name"
    done
}

stop_hosts() {
    local name
    for name in $(made_hosts); do
        # The kernel takes its time to remove a network.
        kill_host "$name" &
    done
    wait
}

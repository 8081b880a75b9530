#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The settings: their defaults, local.conf, and what follows from them. To be sourced; read_settings is the entry.
#
# local.conf has DevStack's form. [[local|localrc]] is shell; [[post-config|$NOVA_LITE_CONF]] and its like are added to
# the configuration file that the variable names. The environment is not asked, so that one cloud has one description.

# The other parts read what is set here.
# shellcheck disable=SC2034

readonly DEVSTACK_DIR="$TOP/devstack"

# Every setting that local.conf may make, with its default; local.conf.sample explains them.
declare -A SETTINGS=(
    [DEST]=/opt/nova-lite-devstack [PREFIX]=nl
    [HOSTS]=3 [HOST_PREFIX]=n [VIRT_DRIVER]=libvirt [FAKE_NODES]=1 [FAKE_VCPUS]=8 [FAKE_MEMORY_MB]=16384
    [LIBVIRT_TYPE]=qemu [LIVE_MIGRATION]=shared
    [CONDUCTORS]=2 [SCHEDULERS]=2 [API_WORKERS]=1 [ENABLE_KEYSTONE]=True
    [MGMT_RANGE]=10.77.0.0/24 [GUEST_RANGE]=10.78.0.0/24 [SERVICE_HOST]=""
    [NOVA_LITE_PORT]="" [KEYSTONE_PORT]="" [GLANCE_PORT]="" [RABBIT_PORT]="" [MYSQL_PORT]=""
    [EPMD_PORT]="" [RABBIT_DIST_PORT]=""
    [REGION_NAME]=RegionOne
    [ADMIN_PASSWORD]="" [DATABASE_PASSWORD]="" [RABBIT_PASSWORD]="" [SERVICE_PASSWORD]=""
    [NOVA_LITE_VENV]="" [OPENSTACK_VENV]="" [OFFLINE]=False
    [KEYSTONE_REQUIREMENT]="keystone>=27,<31" [GLANCE_REQUIREMENT]="glance>=30,<34"
    [GUEST_IMAGES]="nano tiny"
)

# The ports that are taken unless a setting or another program has it otherwise.
declare -rA STANDARD_PORTS=(
    [NOVA_LITE_PORT]=8774 [KEYSTONE_PORT]=5000 [GLANCE_PORT]=9292 [RABBIT_PORT]=5672 [MYSQL_PORT]=3306
    [EPMD_PORT]=4369 [RABBIT_DIST_PORT]=25672
)

# Reads local.conf and sets every setting, and what follows from them.
read_settings() {
    local name
    LOCAL_CONF="${NOVA_LITE_LOCAL_CONF:-$DEVSTACK_DIR/local.conf}"
    for name in "${!SETTINGS[@]}"; do
        printf -v "$name" '%s' "${SETTINGS[$name]}"
    done
    read_localrc
    check_settings
    derive_settings
}

# Prints the lines of a section of local.conf: local_conf_section 'local|localrc'
local_conf_section() {
    [[ -e "$LOCAL_CONF" ]] || return 0
    awk -v wanted="[[$1]]" '
        /^\[\[.*\]\][[:space:]]*$/ { sub(/[[:space:]]+$/, ""); inside = ($0 == wanted); next }
        inside { print }
    ' "$LOCAL_CONF"
}

# Names in capitals that local.conf sets and nobody reads are misspelt: they are refused.
read_localrc() {
    local before after name unknown=()
    [[ -z "${NOVA_LITE_LOCAL_CONF:-}" || -r "$LOCAL_CONF" ]] ||
        die "there is no file $LOCAL_CONF, which NOVA_LITE_LOCAL_CONF names"
    check_sections
    before="$(compgen -v)"
    # shellcheck disable=SC1090
    source <(local_conf_section "local|localrc")
    after="$(compgen -v)"
    for name in $(comm -13 <(sort <<< "$before") <(sort <<< "$after")); do
        if [[ "$name" == [A-Z]* && -z "${SETTINGS[$name]+known}" && "$name" != BASH* && "$name" != PIPESTATUS ]]; then
            unknown+=("$name")
        fi
    done
    [[ ${#unknown[@]} -eq 0 ]] ||
        die "$LOCAL_CONF sets ${unknown[*]}, which is no setting; see devstack/local.conf.sample"
}

check_sections() {
    local line
    [[ -e "$LOCAL_CONF" ]] || return 0
    while read -r line; do
        case "$line" in
            "[[local|localrc]]") ;;
            "[[post-config|\$NOVA_LITE_CONF]]" | "[[post-config|\$NOVA_LITE_CPU_CONF]]") ;;
            "[[post-config|\$KEYSTONE_CONF]]" | "[[post-config|\$GLANCE_API_CONF]]") ;;
            *) die "$LOCAL_CONF has a section $line, which nobody reads; see devstack/local.conf.sample" ;;
        esac
    done < <(sed -n 's/^\(\[\[.*\]\]\)[[:space:]]*$/\1/p' "$LOCAL_CONF")
}

# True for DevStack's spellings of yes: is_true VALUE
is_true() {
    case "${1,,}" in
        true | yes | 1 | on) return 0 ;;
        *) return 1 ;;
    esac
}

must_be_number() { # NAME LEAST MOST
    local value="${!1}"
    if [[ ! "$value" =~ ^[0-9]{1,6}$ ]] || ((value < $2 || value > $3)); then
        die "$1=$value in $LOCAL_CONF has to be a number from $2 to $3"
    fi
}

must_be_one_of() { # NAME VALUE...
    local name="$1" value
    shift
    for value in "$@"; do
        [[ "${!name}" != "$value" ]] || return 0
    done
    die "$name=${!name} in $LOCAL_CONF has to be one of: $*"
}

check_settings() {
    local name
    must_be_number HOSTS 1 200
    must_be_number CONDUCTORS 1 64
    must_be_number SCHEDULERS 1 64
    must_be_number API_WORKERS 1 64
    must_be_number FAKE_NODES 1 10000
    must_be_number FAKE_VCPUS 1 999999
    must_be_number FAKE_MEMORY_MB 1 999999
    must_be_one_of VIRT_DRIVER libvirt fake
    must_be_one_of LIBVIRT_TYPE qemu kvm
    must_be_one_of LIVE_MIGRATION shared block
    for name in ENABLE_KEYSTONE OFFLINE; do
        must_be_one_of "$name" True False
    done
    for name in "${!STANDARD_PORTS[@]}"; do
        [[ -z "${!name}" ]] || must_be_number "$name" 1 65535
    done
    # Interfaces have names of 15 letters at the most: PREFIX-nXXX-m.
    [[ "$PREFIX" =~ ^[a-z][a-z0-9]{0,4}$ ]] ||
        die "PREFIX=$PREFIX in $LOCAL_CONF has to be 1 to 5 small letters and digits, since interfaces are named by it"
    [[ "$HOST_PREFIX" =~ ^[a-z]{1,3}$ ]] || die "HOST_PREFIX=$HOST_PREFIX in $LOCAL_CONF has to be 1 to 3 small letters"
    # Unix sockets in it have names of 107 letters at the most.
    [[ "$DEST" =~ ^/[^[:space:]]{1,60}$ ]] ||
        die "DEST=$DEST in $LOCAL_CONF has to be an absolute path of at most 60 letters without spaces"
    case "$DEST/" in
        /run/*) die "DEST=$DEST in $LOCAL_CONF must not be below /run, which every host has one of its own" ;;
    esac
    for name in ADMIN_PASSWORD DATABASE_PASSWORD RABBIT_PASSWORD SERVICE_PASSWORD; do
        [[ "${!name}" =~ ^[A-Za-z0-9._~-]*$ ]] ||
            die "$name in $LOCAL_CONF may have letters, digits and ._~- only, since it becomes part of URLs"
    done
    for name in $GUEST_IMAGES; do
        [[ "$name" == nano || "$name" == tiny ]] || die "GUEST_IMAGES in $LOCAL_CONF has $name; there are nano and tiny"
    done
}

# Prints the address with that number in a range: address_in RANGE NUMBER
address_in() {
    local base="${1%/*}" a b c d number
    IFS=. read -r a b c d <<< "$base"
    number=$(((a << 24 | b << 16 | c << 8 | d) + $2))
    printf '%d.%d.%d.%d\n' $((number >> 24 & 255)) $((number >> 16 & 255)) $((number >> 8 & 255)) $((number & 255))
}

# The ranges start at a multiple of their size and have room for all hosts.
check_range() { # NAME
    local a b c d bits number
    [[ "${!1}" =~ ^([0-9]+)\.([0-9]+)\.([0-9]+)\.([0-9]+)/([0-9]+)$ ]] ||
        die "$1=${!1} in $LOCAL_CONF has to be a subnet, as 10.77.0.0/24"
    a="${BASH_REMATCH[1]}" b="${BASH_REMATCH[2]}" c="${BASH_REMATCH[3]}" d="${BASH_REMATCH[4]}"
    bits="${BASH_REMATCH[5]}"
    ((a <= 255 && b <= 255 && c <= 255 && d <= 255 && bits >= 8 && bits <= 28)) ||
        die "$1=${!1} in $LOCAL_CONF has to be a subnet with a prefix of 8 to 28 bits"
    number=$((a << 24 | b << 16 | c << 8 | d))
    (((number & ((1 << (32 - bits)) - 1)) == 0)) || die "$1=${!1} in $LOCAL_CONF has bits set beyond its prefix"
    ((HOSTS + 12 < 1 << (32 - bits))) || die "$1=${!1} in $LOCAL_CONF has no room for $HOSTS hosts"
}

derive_settings() {
    check_range MGMT_RANGE
    check_range GUEST_RANGE
    SERVICE_HOST="${SERVICE_HOST:-$(address_in "$MGMT_RANGE" 1)}"
    GUEST_GATEWAY="$(address_in "$GUEST_RANGE" 1)"
    ETC_DIR="$DEST/etc" DATA_DIR="$DEST/data" LOGDIR="$DEST/logs" RUN_DIR="$DEST/run" CACHE_DIR="$DEST/cache"
    BIN_DIR="$DEST/bin"
    MGMT_BRIDGE="$PREFIX-mgmt" GUEST_BRIDGE="$PREFIX-guest"
    OWN_NOVA_LITE_VENV="$([[ -n "$NOVA_LITE_VENV" ]] && echo no || echo yes)"
    OWN_OPENSTACK_VENV="$([[ -n "$OPENSTACK_VENV" ]] && echo no || echo yes)"
    NOVA_LITE_VENV="${NOVA_LITE_VENV:-$DEST/venvs/nova-lite}"
    OPENSTACK_VENV="${OPENSTACK_VENV:-$DEST/venvs/openstack}"
    NOVA_LITE_CONF="$ETC_DIR/nova-lite/nova-lite.conf"
    KEYSTONE_CONF="$ETC_DIR/keystone/keystone.conf"
    GLANCE_API_CONF="$ETC_DIR/glance/glance-api.conf"
    HOSTS_OF_CLOUD="$HOSTS"
    if [[ "$VIRT_DRIVER" == fake ]]; then
        GUEST_IMAGES=nano
        HOSTS_OF_CLOUD=$((HOSTS * FAKE_NODES))
    fi
    read_choices
}

# Ports and passwords were chosen once, and stay.
read_choices() {
    local chosen
    for chosen in "$ETC_DIR/ports" "$ETC_DIR/passwords"; do
        # shellcheck disable=SC1090
        [[ ! -r "$chosen" ]] || source "$chosen"
    done
    if is_true "$ENABLE_KEYSTONE"; then
        AUTH_URL="http://$SERVICE_HOST:$KEYSTONE_PORT/v3"
    else
        AUTH_URL="http://$SERVICE_HOST:$NOVA_LITE_PORT/v3"
    fi
    COMPUTE_URL="http://$SERVICE_HOST:$NOVA_LITE_PORT"
    IMAGE_URL="http://$SERVICE_HOST:$GLANCE_PORT"
}

# Prints the names of the hosts.
host_names() {
    seq -f "$HOST_PREFIX%.0f" 1 "$HOSTS"
}

# Refuses a folder that is not ours, which unstack.sh and clean.sh would otherwise empty.
check_dest() {
    if [[ -d "$DEST" && ! -e "$DEST/.nova-lite-devstack" && -n "$(ls -A "$DEST")" ]]; then
        die "$DEST is there and is not of a stack; set DEST in $LOCAL_CONF to a folder that is not there yet"
    fi
}

must_be_stacked() {
    [[ -r "$ETC_DIR/passwords" && -r "$ETC_DIR/ports" ]] ||
        die "there is no cloud in $DEST that you may use; devstack/stack.sh makes one, as root"
}

# Only one of stack.sh, unstack.sh and clean.sh at a time.
lock_dest() {
    exec 9> "$DEST/.nova-lite-devstack"
    flock --nonblock 9 || die "another stack.sh, unstack.sh or clean.sh is at work on $DEST; wait for it"
}

must_be_root() {
    [[ "$(id -u)" == 0 ]] || die "run it as root: it makes namespaces, bridges and mounts"
}

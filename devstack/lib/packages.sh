#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What has to be installed: Debian packages, and Python packages in virtual environments. To be sourced.

# Debian packages by what needs them.
declare -rA PACKAGES=(
    [base]="iproute2 util-linux python3"
    [services]="mariadb-server rabbitmq-server"
    [libvirt]="libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 qemu-utils"
    [venv]="python3-venv"
    [build]="libvirt-dev pkg-config gcc libc6-dev python3-dev"
    [nano]="binutils qemu-utils"
    [tiny]="binutils qemu-utils busybox-static cpio dosfstools dropbear-bin fdisk mtools syslinux syslinux-common"
)

# Prints the groups of packages that the settings ask for.
wanted_packages() {
    echo base services
    [[ "$VIRT_DRIVER" != libvirt ]] || echo libvirt
    [[ "$OWN_NOVA_LITE_VENV $OWN_OPENSTACK_VENV" == "no no" ]] || echo venv
    [[ "$VIRT_DRIVER $OWN_NOVA_LITE_VENV" != "libvirt yes" ]] || echo build
    echo "$GUEST_IMAGES"
}

missing_packages() {
    local group package
    for group in $(wanted_packages); do
        for package in ${PACKAGES[$group]}; do
            if [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" != installed ]]; then
                echo "$package"
            fi
        done
    done | sort -u
}

install_packages() {
    local missing=()
    if ! command -v dpkg-query > /dev/null; then
        note "not Debian: what is missing is left to you"
        return
    fi
    mapfile -t missing < <(missing_packages)
    if [[ ${#missing[@]} -eq 0 ]]; then
        note "all there"
        return
    fi
    if is_true "$OFFLINE"; then
        die "OFFLINE=True, and Debian packages are missing: apt-get install --no-install-recommends ${missing[*]}"
    fi
    install_without_starting "${missing[@]}"
    note "${#missing[@]} installed"
}

# Packages start their services unless policy-rc.d forbids it; a machine that has none gets one for this moment.
install_without_starting() {
    local policy=/usr/sbin/policy-rc.d made_policy=no status=0
    if [[ ! -e "$policy" ]]; then
        printf '#!/bin/sh\nexit 101\n' > "$policy"
        chmod 755 "$policy"
        made_policy=yes
    fi
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -q && apt-get install -q -y --no-install-recommends "$@"; } || status=$?
    [[ "$made_policy" == no ]] || rm -f "$policy"
    return "$status"
}

# Makes a virtual environment, or brings it up to date when what is wanted has changed:
# make_venv DIRECTORY STAMP REQUIREMENT...
make_venv() {
    local venv="$1" stamp="$2" python
    shift 2
    python="$("$TOP/tools/find-python")" || die "there is no Python 3.11 or newer with venv"
    stamp="$(sha256sum <<< "$stamp $python $*")"
    if [[ -x "$venv/bin/python" && "$(cat "$venv/stack-stamp" 2> /dev/null)" == "$stamp" ]]; then
        note "there"
        return
    fi
    ! is_true "$OFFLINE" || die "OFFLINE=True, and $venv is not there or not up to date"
    [[ -x "$venv/bin/python" ]] || "$python" -m venv "$venv"
    PIP_DISABLE_PIP_VERSION_CHECK=1 "$venv/bin/python" -m pip install "$@"
    echo "$stamp" > "$venv/stack-stamp"
}

install_nova_lite() {
    local extra=
    [[ "$VIRT_DRIVER" != libvirt ]] || extra="[libvirt]"
    if [[ "$OWN_NOVA_LITE_VENV" == yes ]]; then
        make_venv "$NOVA_LITE_VENV" "$(cat "$TOP/setup.cfg")" --editable "$TOP$extra" python-openstackclient
    else
        note "$NOVA_LITE_VENV"
    fi
    must_import "$NOVA_LITE_VENV" nova_lite openstackclient ${extra:+libvirt}
}

install_openstack() {
    if [[ "$OWN_OPENSTACK_VENV" == yes ]]; then
        make_venv "$OPENSTACK_VENV" "" "$KEYSTONE_REQUIREMENT" "$GLANCE_REQUIREMENT" gunicorn PyMySQL
    else
        note "$OPENSTACK_VENV"
    fi
    must_import "$OPENSTACK_VENV" keystone glance gunicorn pymysql
}

must_import() { # VENV MODULE...
    local venv="$1" module
    shift
    [[ -x "$venv/bin/python" ]] || die "there is no virtual environment $venv"
    for module in "$@"; do
        # -P: not with this directory among those that modules come from.
        "$venv/bin/python" -P -c "import importlib.util as u, sys; sys.exit(u.find_spec('$module') is None)" ||
            die "$venv does not have the Python package of $module; install it there, or leave the venv to stack.sh"
    done
}

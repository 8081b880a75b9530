#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The first process of a host: it makes the host's view of the machine, and then reaps what ends. When it ends, the
# kernel ends all processes of the host, guests as well, as if the power were cut.
#
# $1 is the host's folder, $2 its name. All namespaces but the user's are the host's own already (hosts.sh).

set -euo pipefail

mount --make-rprivate /
hostname "$2"
# Interfaces of this network; cgroups hidden, for two hosts' libvirts would fight over the same groups.
mount -t sysfs sysfs /sys
[[ ! -d /sys/fs/cgroup ]] || mount -t tmpfs tmpfs /sys/fs/cgroup
# No system bus: libvirt would wait for services on it that are not there.
mount -t tmpfs -o mode=755 tmpfs /run
if [[ -d "$1/libvirt" ]]; then
    mkdir /run/libvirt
    mount --bind "$1/libvirt/run" /run/libvirt
    mount --bind "$1/libvirt/etc" /etc/libvirt
    for name in lib log cache; do
        mount --bind "$1/libvirt/$name" "/var/$name/libvirt"
    done
    mount --bind "$1/etc/passwd" /etc/passwd
    mount --bind "$1/etc/group" /etc/group
fi
mount --bind "$1/etc/hosts" /etc/hosts
[[ ! -e /etc/machine-id ]] || mount --bind "$1/etc/machine-id" /etc/machine-id
ip link set lo up
touch "$1/mounted"

while :; do
    sleep 3600 &
    wait $! || true
done

#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
#
# The first process of the image "tiny" (tiny_image.sh): it takes name, address and key from the config drive, says
# TINY READY on the console, and serves a root shell there and over SSH, with the server's keypair.

/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
while read -r module; do
    insmod "/modules/$module" || echo "TINY has no use of $module"
done < /modules/order

# The value that a key has in a JSON file where it stands first: value FILE KEY
value() {
    grep -o "\"$2\": *\"[^\"]*\"" "$1" | head -n 1 | cut -d '"' -f 4
}

hostname tiny
ip link set lo up
ip link set eth0 up 2> /dev/null
drive="$(findfs LABEL=config-2 2> /dev/null)"
metadata=/drive/openstack/latest/meta_data.json
network=/drive/openstack/latest/network_data.json
if [ -n "$drive" ] && mount -t iso9660 -o ro "$drive" /drive; then
    hostname "$(value "$metadata" hostname)"
    tr -d '\n' < "$metadata" | sed -n 's/.*"public_keys": *{[^}]*: *"\([^"]*\)"}.*/\1/p' | sed 's/\\n//g' \
        > /root/.ssh/authorized_keys
    address="$(value "$network" ip_address)"
    if [ -n "$address" ]; then
        ifconfig eth0 "$address" netmask "$(value "$network" netmask)"
        gateway="$(value "$network" gateway)"
        [ -z "$gateway" ] || route add default gw "$gateway"
        echo "TINY ADDRESS $address" > /dev/console
    fi
fi

# acpid's own table runs this at the power button.
acpid -c /etc/acpi -l /dev/null
dropbear -R -s
echo "TINY READY $(hostname)" > /dev/console
exec /bin/init

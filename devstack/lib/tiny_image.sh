#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The image "tiny": a Linux that boots from its disk, made of Debian's cloud kernel, busybox and dropbear without a mount
# or a loop device. It needs 96 MiB. To be sourced.

# In this order, for they are loaded one by one; what the kernel has built in is left out.
readonly TINY_MODULES="
    drivers/virtio/virtio_ring drivers/virtio/virtio drivers/virtio/virtio_pci_legacy_dev
    drivers/virtio/virtio_pci_modern_dev drivers/virtio/virtio_pci drivers/block/virtio_blk net/core/failover
    drivers/net/net_failover drivers/net/virtio_net drivers/acpi/button drivers/input/evdev
    drivers/virtio/virtio_balloon drivers/scsi/scsi_common drivers/scsi/scsi_mod drivers/scsi/virtio_scsi
    drivers/ata/libata drivers/ata/ata_piix drivers/cdrom/cdrom drivers/scsi/sr_mod fs/isofs/isofs
    drivers/char/hw_random/rng-core drivers/char/hw_random/virtio-rng"

readonly TINY_COMMAND_LINE="console=tty0 console=ttyS0 quiet panic=1 rdinit=/init random.trust_cpu=on mitigations=off"

build_tiny() { # FILE
    local work="$CACHE_DIR/images/tiny.work"
    rm -rf "$work"
    mkdir -p "$work"
    unpack_kernel "$work/kernel"
    make_tiny_root "$work/kernel" "$work/root"
    (cd "$work/root" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) > "$work/initrd"
    make_tiny_disk "$work" "$work/disk.raw"
    qemu-img convert -f raw -O qcow2 -c "$work/disk.raw" "$work/disk.qcow2"
    mv "$work/disk.qcow2" "$1"
    rm -rf "$work"
}

# The kernel's package is downloaded and unpacked, not installed: unpack_kernel DIRECTORY
unpack_kernel() {
    local package
    ! is_true "$OFFLINE" || die "OFFLINE=True, and the image tiny has yet to be built; it needs a kernel"
    package="$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }')"
    [[ -n "$package" ]] || die "apt knows no linux-image-cloud-amd64; run apt-get update"
    mkdir -p "$1/download"
    # apt gives its rights away for downloads, unless the folder is not open to all.
    (cd "$1/download" && apt-get download -q -o APT::Sandbox::User=root "$package")
    dpkg -x "$1/download"/*.deb "$1"
}

make_tiny_root() { # KERNEL ROOT
    local modules module name library
    modules="$(echo "$1"/lib/modules/*)/kernel"
    mkdir -p "$2"/{bin,dev,drive,etc/acpi/PWRF,etc/dropbear,modules,proc,root/.ssh,run,sys,tmp,var/log,var/run}
    chmod 700 "$2/root" "$2/root/.ssh"
    cp /bin/busybox "$2/bin/busybox"
    install -m 755 "$DEVSTACK_DIR/lib/tiny_init.sh" "$2/init"
    for module in $TINY_MODULES; do
        name="$(basename "$module").ko"
        if [[ -e "$modules/$module.ko" ]]; then
            cp "$modules/$module.ko" "$2/modules/"
            echo "$name" >> "$2/modules/order"
        fi
    done
    cp /usr/sbin/dropbear "$2/bin/"
    for library in $(ldd /usr/sbin/dropbear | grep -o '/[^ ]*'); do
        install -D "$library" "$2$library"
    done
    echo "root:x:0:0:root:/root:/bin/sh" > "$2/etc/passwd"
    echo "root:x:0:" > "$2/etc/group"
    echo /bin/sh > "$2/etc/shells"
    printf 'ttyS0::respawn:-/bin/sh\n::shutdown:/bin/umount -a -r\n' > "$2/etc/inittab"
    printf '#!/bin/sh\necho "TINY BYE" > /dev/console\n/bin/poweroff\n' > "$2/etc/acpi/PWRF/00000080"
    chmod 755 "$2/etc/acpi/PWRF/00000080"
}

# A disk with one FAT partition, which syslinux boots from: make_tiny_disk WORK FILE
make_tiny_disk() {
    local partition="$1/partition" megabytes=40
    cat > "$1/syslinux.cfg" << END
SERIAL 0 115200
PROMPT 0
TIMEOUT 1
DEFAULT linux
LABEL linux
 KERNEL vmlinuz
 INITRD initrd
 APPEND $TINY_COMMAND_LINE
END
    truncate -s "${megabytes}M" "$partition"
    mkfs.vfat -F 16 -h 2048 -n TINY "$partition"
    MTOOLS_SKIP_CHECK=1 mcopy -i "$partition" "$1"/kernel/boot/vmlinuz-* ::vmlinuz
    MTOOLS_SKIP_CHECK=1 mcopy -i "$partition" "$1/initrd" "$1/syslinux.cfg" ::
    syslinux --install "$partition"
    truncate -s "$((megabytes + 1))M" "$2"
    printf 'label: dos\nstart=2048, size=%d, type=e, bootable\n' "$((megabytes * 2048))" | sfdisk -q "$2"
    dd if=/usr/lib/syslinux/mbr/mbr.bin of="$2" bs=440 count=1 conv=notrunc status=none
    dd if="$partition" of="$2" bs=1M seek=1 conv=notrunc,sparse status=none
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Images that boot fast, built from sources that are here (lib/NAME*) or in Debian; kept in DEST/cache until these
# sources change. To be sourced.

# Prints the file of an image: guest_image_file NAME
guest_image_file() {
    echo "$CACHE_DIR/images/$1.qcow2"
}

build_guest_images() {
    local name file stamp built=0
    mkdir -p "$CACHE_DIR/images"
    for name in $GUEST_IMAGES; do
        file="$(guest_image_file "$name")"
        stamp="$(sha256sum "$DEVSTACK_DIR/lib/$name"* | sha256sum)"
        if [[ ! -e "$file" || "$(cat "$file.stamp" 2> /dev/null)" != "$stamp" ]]; then
            "build_$name" "$file"
            echo "$stamp" > "$file.stamp"
            built=$((built + 1))
        fi
    done
    if ((built == 0)); then
        note "there"
    fi
}

# A guest of 512 bytes, for everything that needs no operating system.
build_nano() { # FILE
    local work="$CACHE_DIR/images/nano.work"
    rm -rf "$work"
    mkdir -p "$work"
    as --32 -o "$work/nano.o" "$DEVSTACK_DIR/lib/nano.s"
    ld -m elf_i386 --oformat binary -Ttext 0x7c00 -e 0x7c00 -o "$work/nano.raw" "$work/nano.o"
    truncate -s 1M "$work/nano.raw"
    qemu-img convert -f raw -O qcow2 "$work/nano.raw" "$work/nano.qcow2"
    mv "$work/nano.qcow2" "$1"
    rm -rf "$work"
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Brings all parts in. To be sourced, with TOP being the checkout.

# Numbers and messages are the same for everybody.
export LC_ALL=C.UTF-8

for part in messages settings choices processes packages networks mariadb rabbitmq wsgi keystone glance nova_lite hosts cables \
    guest_images tiny_image cloud; do
    # shellcheck source=/dev/null
    source "$TOP/devstack/lib/$part.sh"
done
unset part

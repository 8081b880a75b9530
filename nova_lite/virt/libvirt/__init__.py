# SPDX-License-Identifier: Apache-2.0
"""The libvirt driver: QEMU guests, with or without KVM, on the host of the compute service."""

# SPDX-License-Identifier: Apache-2.0
"""libvirt's and QEMU's words, put for the user, who knows neither them nor the host."""

from __future__ import annotations

import re

from nova_lite.objects.instance import Instance

_PATH = re.compile(r"(?<![\w/])/[\w.+@/-]+")


def without_paths(text: str) -> str:
    """Cut absolute paths down to their last part: the host's insides are not the users'."""
    return _PATH.sub(lambda match: match.group().rstrip("/").rpartition("/")[2], text)


def why_not_started(reason: str, instance: Instance) -> str:
    """Explain why a guest did not start; what is not known passes through without paths."""
    if "annot allocate memory" in reason or "annot set up guest memory" in reason:
        return f"the host has not the {instance.flavor.memory_mb} MiB of memory that the flavor needs."
    if "No space left" in reason:
        return "the host's disk is full."
    if "KVM" in reason and ("ermission denied" in reason or "not available" in reason or "ould not access" in reason):
        return "hardware virtualisation (KVM) does not work on the host."
    return f"the hypervisor did not start it ({without_paths(reason)})."

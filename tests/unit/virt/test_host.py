# SPDX-License-Identifier: Apache-2.0
"""Reading libvirt's description of a host."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: pip install '.[libvirt]'")

from nova_lite.virt.libvirt.host import cpu_info, guest_architectures  # noqa: E402 - needs libvirt

CAPABILITIES = ElementTree.fromstring(
    """
    <capabilities>
      <host><cpu><arch>x86_64</arch><model>EPYC</model><vendor>AMD</vendor>
        <topology sockets='2' dies='1' cores='8' threads='2'/>
        <feature name='vmx'/><feature name='aes'/><feature name='aes'/></cpu></host>
      <guest><os_type>hvm</os_type><arch name='x86_64'><domain type='qemu'/><domain type='kvm'/></arch></guest>
      <guest><os_type>hvm</os_type><arch name='aarch64'><domain type='qemu'/></arch></guest>
    </capabilities>
    """
)
INFO = ["x86_64", 2048, 4, 2000, 1, 1, 2, 2]


def test_architectures_are_those_of_the_type_of_guests() -> None:
    assert guest_architectures(CAPABILITIES, "qemu") == ("x86_64", "aarch64")
    assert guest_architectures(CAPABILITIES, "kvm") == ("x86_64",)
    assert guest_architectures(CAPABILITIES, "xen") == ()


def test_cpu_info_has_what_the_api_shows() -> None:
    assert cpu_info(CAPABILITIES, INFO) == {
        "arch": "x86_64",
        "model": "EPYC",
        "vendor": "AMD",
        "topology": {"cells": 1, "sockets": 2, "cores": 8, "threads": 2},
        "features": ["aes", "vmx"],
    }


def test_cpu_that_libvirt_does_not_know_is_left_empty() -> None:
    info = cpu_info(ElementTree.fromstring("<capabilities><host/></capabilities>"), INFO)

    assert (info["arch"], info["model"], info["features"]) == ("x86_64", "", [])
    assert info["topology"] == {"cells": 1, "sockets": 1, "cores": 2, "threads": 2}

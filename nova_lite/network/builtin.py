# SPDX-License-Identifier: Apache-2.0
"""The built-in network as [network] describes it: what api and conductor hand addresses out of."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, ip_address
from typing import TypeVar

from oslo_config import cfg

from nova_lite.objects.network import Network

T = TypeVar("T")

_NO_GATEWAY = "none"


def read(conf: cfg.ConfigOpts) -> Network | None:
    """Return the network that the options describe; None without a subnet: then nobody hands addresses out.

    :raises cfg.ConfigFileValueError: they contradict each other.
    """
    options = conf.network
    if not options.subnet:
        return None
    subnet = _subnet(options.subnet)
    gateway = _gateway(options.gateway, subnet)
    first, last = _range(options.allocation_range, subnet)
    for server in options.dns:
        _parse("dns", server, ip_address)
    return Network(options.name, subnet, gateway, first, last, tuple(options.dns), options.mtu)


def _subnet(text: str) -> IPv4Network:
    subnet = _parse("subnet", text, IPv4Network)
    if not 8 <= subnet.prefixlen <= 30:
        raise _wrong("subnet", text, "its prefix has to be from /8 to /30")
    return subnet


def _gateway(text: str | None, subnet: IPv4Network) -> IPv4Address | None:
    if text == _NO_GATEWAY:
        return None
    gateway = _parse("gateway", text, IPv4Address) if text else subnet.network_address + 1
    if gateway not in subnet:
        raise _wrong("gateway", text, f"it is not in the subnet {subnet}")
    return gateway


def _range(text: str | None, subnet: IPv4Network) -> tuple[int, int]:
    first, last = int(subnet.network_address) + 1, int(subnet.broadcast_address) - 1
    if not text:
        return first, last
    begin, _, end = text.partition("-")
    low, high = (int(_parse("allocation_range", part.strip(), IPv4Address)) for part in (begin, end))
    if not first <= low <= high <= last:
        raise _wrong("allocation_range", text, f"it has to rise, and to lie within the subnet {subnet}")
    return low, high


def _parse(option: str, text: str, kind: Callable[[str], T]) -> T:
    try:
        return kind(text)
    except ValueError as error:
        raise _wrong(option, text, str(error))


def _wrong(option: str, text: str | None, why: str) -> cfg.ConfigFileValueError:
    return cfg.ConfigFileValueError(f"[network] {option} = {text}: {why}.")

# SPDX-License-Identifier: Apache-2.0
"""What a create asks for in networks: none, one's choice, or an address of the built-in network by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import AddressValueError, IPv4Address
from typing import Any

from nova_lite import exception
from nova_lite.objects.instance import NetworkRequest
from nova_lite.objects.network import Network


def requested(network: Network | None, server: Mapping[str, Any], uuids: Sequence[str]) -> tuple[NetworkRequest, ...]:
    """Read the networks of a create that has passed its schema.

    :param network: the built-in network, None if there is none that can be named.
    :raises BadRequest: what is asked for is not to be had here.
    """
    wanted = server.get("networks", "auto")
    if isinstance(wanted, str):
        return (NetworkRequest(wanted),)
    if not wanted:
        return (NetworkRequest("auto"),)
    if network is None:
        raise exception.BadRequest(
            "This cloud has no network service: networks and ports cannot be chosen. Use networks 'none' or 'auto', or "
            "leave them out below microversion 2.37."
        )
    if len(wanted) > 1:
        raise exception.BadRequest(
            f"This cloud has one network, {network.name}, and a server one interface on it: name it once."
        )
    return (_named(network, wanted[0], uuids),)


def _named(network: Network, wanted: Mapping[str, Any], uuids: Sequence[str]) -> NetworkRequest:
    if wanted.get("port"):
        raise exception.BadRequest(
            "Ports cannot be chosen: this cloud makes a server's port itself. Name the network instead, and fixed_ip "
            "for a certain address."
        )
    if wanted.get("uuid") is None:
        raise exception.BadRequest("Bad network format: missing 'uuid'")
    if wanted["uuid"].lower() != network.id:
        raise exception.BadRequest(
            f"Network {wanted['uuid']} could not be found: the only one is {network.id} ({network.name})."
        )
    tag = wanted.get("tag") or ""
    if not wanted.get("fixed_ip"):
        return NetworkRequest("auto", tag=tag)
    if len(uuids) > 1:
        raise exception.BadRequest("Invalid fixed_ip: max_count must be 1 if a fixed_ip is specified.")
    number = _number(network, wanted["fixed_ip"])
    return NetworkRequest("auto", wanted["fixed_ip"], tag, network.port(uuids[0], number, tag))


def _number(network: Network, text: str) -> int:
    try:
        number = int(IPv4Address(text))
    except AddressValueError:
        number = 0
    if not network.is_usable(number):
        raise exception.BadRequest(
            f"Fixed IP {text} is not a valid ip address for network {network.id}: it has to be one of "
            f"{network.subnet}, and neither the gateway's nor the subnet's first or last."
        )
    return number

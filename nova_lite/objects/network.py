# SPDX-License-Identifier: Apache-2.0
"""The built-in network, and the ports by which servers are on it: values only, whoever keeps them.

An address is a number here and in the database, so that ranges of addresses can be asked for, and text to everybody
else.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

_MAC_PREFIX = "fa:16:3e"  # OpenStack's, which operators know


@dataclass(frozen=True, slots=True)
class Port:
    """A server's place on a network, with all that its guest must be told; it keeps it for as long as it lives.

    prefix is the length of the network's prefix. gateway is empty if there is none.
    """

    id: str
    mac: str
    address: str
    prefix: int
    network_id: str
    network: str
    gateway: str = ""
    dns: tuple[str, ...] = ()
    mtu: int = 1500
    tag: str = ""
    subnet_id: str = ""


@dataclass(frozen=True, slots=True)
class Network:
    """The network that the operator has described. Addresses from first to last are handed out by themselves."""

    name: str
    subnet: IPv4Network
    gateway: IPv4Address | None
    first: int
    last: int
    dns: tuple[str, ...] = ()
    mtu: int = 1500

    @property
    def id(self) -> str:
        """The network's uuid: it follows from the subnet, so that every process knows it and no renaming changes it."""
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"nova-lite network {self.subnet}"))

    @property
    def subnet_id(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"nova-lite subnet {self.subnet}"))

    @property
    def size(self) -> int:
        """How many addresses there are to hand out."""
        here = self.gateway is not None and self.first <= int(self.gateway) <= self.last
        return self.last - self.first + 1 - here

    def windows(self, start: int, width: int) -> Iterator[range]:
        """Go once around the range of addresses, from start on, in pieces of at most width addresses."""
        start = start if self.first <= start <= self.last else self.first
        for begin, end in ((start, self.last + 1), (self.first, start)):
            for low in range(begin, end, width):
                yield range(low, min(low + width, end))

    def is_usable(self, number: int) -> bool:
        """Tell whether a guest may have the address, handed out by itself or asked for."""
        edges = (int(self.subnet.network_address), int(self.subnet.broadcast_address))
        inside = edges[0] < number < edges[1]
        return inside and (self.gateway is None or number != int(self.gateway))

    def port(self, instance_uuid: str, number: int, tag: str = "") -> Port:
        """Make the port of a server at an address. Its MAC address follows from that, so that no two are alike."""
        octets = IPv4Address(number).packed
        return Port(
            id=port_id(instance_uuid),
            mac=":".join([_MAC_PREFIX, *(f"{octet:02x}" for octet in octets[1:])]),
            address=str(IPv4Address(number)),
            prefix=self.subnet.prefixlen,
            network_id=self.id,
            network=self.name,
            gateway=str(self.gateway or ""),
            dns=self.dns,
            mtu=self.mtu,
            tag=tag,
            subnet_id=self.subnet_id,
        )


def port_id(instance_uuid: str) -> str:
    """Return the uuid of an instance's interface."""
    return str(uuid.uuid5(uuid.UUID(instance_uuid), "port"))

# SPDX-License-Identifier: Apache-2.0
"""A slow cable, for kernels without netem: ``python slow.py INTERFACE OTHER MILLISECONDS``.

Frames that come in at either interface go out at the other, so much later. The virtio header that the kernel is asked
for (packet(7), PACKET_VNET_HDR) travels along, since between namespaces frames may be larger than the cable's and have
no checksum yet.
"""

from __future__ import annotations

import collections
import select
import socket
import sys
import time

_SOL_PACKET, _PACKET_VNET_HDR, _PACKET_IGNORE_OUTGOING = 263, 15, 23
_ETH_P_ALL = 3
_LARGEST = 1 << 17


def _open(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
    opened.bind((interface, _ETH_P_ALL))
    opened.setblocking(False)
    return opened


def relay(one: socket.socket, other: socket.socket, delay: float) -> None:
    """Pass frames on in both directions, for ever."""
    print("relaying", flush=True)
    across = {one: other, other: one}
    waiting: collections.deque[tuple[float, socket.socket, bytes]] = collections.deque()
    while True:
        patience = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for source in select.select([one, other], [], [], patience)[0]:
            waiting.append((time.monotonic() + delay, across[source], source.recv(_LARGEST)))
        while waiting and waiting[0][0] <= time.monotonic():
            _due, target, frame = waiting.popleft()
            try:
                target.send(frame)
            except OSError:  # the cable is cut, or full: the frame is lost
                continue


if __name__ == "__main__":
    relay(_open(sys.argv[1]), _open(sys.argv[2]), float(sys.argv[3]) / 1000)

# SPDX-License-Identifier: Apache-2.0
"""The body of a request as a stream that bounds what its sender can cost: memory, and the time of a thread.

It takes the place of cheroot's own streams, which read a chunk as a whole however long it says that it is, and wait as
long as something drips in.
"""

from __future__ import annotations

import re
import time
from typing import Any

from nova_lite import exception

_PIECE = 1 << 16
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;.*)?\r\n")
# Bytes of the line that tells a chunk's size; extensions, which nobody uses, count as well.
_SIZE_LINE = 1024
# A sender has these seconds, and after that has to have sent so many bytes a second.
_PATIENCE = 60.0
_SLOWEST = 8192


class BrokenBody(exception.BadRequest):
    """The body did not arrive as HTTP has it. The connection is of no use any more."""

    template = "The request's body broke off, came too slowly, or is not framed as HTTP has it."


class Body:
    """A body of a known length.

    :param source: the connection, a buffered reader whose waits are bounded by the socket's timeout.
    """

    def __init__(self, source: Any, length: int) -> None:
        self.remaining = length
        self._source = source
        self._deadline = time.monotonic() + _PATIENCE

    def read(self, size: int | None = -1) -> bytes:
        """Return so many bytes, fewer only at the end or where the sender closed the connection.

        :raises BrokenBody: it came too slowly, or the connection is broken.
        """
        wanted = self.remaining if size is None or size < 0 else min(size, self.remaining)
        return self._take(wanted)

    def _take(self, wanted: int) -> bytes:
        pieces = []
        while wanted > 0:
            piece = self._piece(min(wanted, _PIECE))
            if not piece:
                break
            wanted -= len(piece)
            self.remaining -= len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        """Read what is there, or wait for something."""
        try:
            piece: bytes = self._source.read1(size)
        except OSError as error:
            raise BrokenBody() from error
        self._deadline += len(piece) / _SLOWEST
        if time.monotonic() > self._deadline:
            raise BrokenBody()
        return piece


class ChunkedBody(Body):
    """A body in chunks. What follows the last one is not read: the connection is closed after the answer."""

    def __init__(self, source: Any) -> None:
        # remaining is what is left of the current chunk.
        super().__init__(source, 0)
        self._first = True
        self._ended = False

    def read(self, size: int | None = -1) -> bytes:
        """Return so many bytes, fewer only at the end.

        :raises BrokenBody: it is not in chunks, has no end, came too slowly, or the connection is broken.
        """
        wanted = float("inf") if size is None or size < 0 else size
        pieces = []
        while wanted > 0 and not self._ended:
            if self.remaining == 0:
                self._begin_chunk()
                continue
            piece = self._take(int(min(wanted, self.remaining)))
            if not piece:
                raise BrokenBody()
            wanted -= len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    def _begin_chunk(self) -> None:
        if not self._first and self._line() != b"\r\n":
            raise BrokenBody()
        self._first = False
        found = _SIZE.fullmatch(self._line())
        if found is None:
            raise BrokenBody()
        self.remaining = int(found[1], 16)
        self._ended = self.remaining == 0

    def _line(self) -> bytes:
        """Read a line, a byte at a time: the reader has a buffer, and its readline would wait without a deadline."""
        line = b""
        while not line.endswith(b"\n") and len(line) < _SIZE_LINE:
            byte = self._piece(1)
            if not byte:
                raise BrokenBody()
            line += byte
        return line

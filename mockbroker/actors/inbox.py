"""What a client has sent: frames, cut out of what comes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.actors.stats import Stats
    from mockbroker.actors.transport import Transport

# What one read may bring of small frames. A larger frame is read into a buffer of its own size, so
# this only costs memory: it is what an idle connection holds.
INBOX_BYTES = 16 * 1024
# The first two bytes of a TLS handshake, taken for those of a frame's size.
TLS_CLIENT_HELLO = 0x1603


_SIZE = struct.Struct(">i").unpack_from


class ProtocolError(Exception):
    """The client broke the protocol; Kafka closes such a connection without an answer."""


class Inbox:
    """The frames of one connection, in the order in which they come."""

    __slots__ = (
        "_answers",
        "_filled",
        "_inbox",
        "_request_bytes_max",
        "_start",
        "_stats",
        "_transport",
    )

    def __init__(self, transport: Transport, stats: Stats, request_bytes_max: int) -> None:
        self._transport = transport
        self._stats = stats
        self._request_bytes_max = request_bytes_max
        self._inbox = memoryview(bytearray(INBOX_BYTES))
        self._start = 0  # the inbox holds bytes [start, filled)
        self._filled = 0
        self._answers = 0  # since the client was last waited for

    def _next_frame(self) -> bytearray | None:
        """A frame that is whole in the inbox already, without its size, in a buffer of its own."""
        start = self._start + 4
        if self._filled < start:
            return None
        end = start + self._frame_size()
        if end > self._filled:
            return None
        frame = bytearray(self._inbox[start:end])
        if end == self._filled:
            self._start = self._filled = 0
        else:
            self._start = end
        self._stats.bytes_in += end - start + 4
        return frame

    def _frame_size(self) -> int:
        """The size at the start of the inbox. Raises ProtocolError for one that cannot be."""
        size: int = _SIZE(self._inbox, self._start)[0]
        if 0 <= size <= self._request_bytes_max:
            return size
        if size >> 16 == TLS_CLIENT_HELLO:
            raise ProtocolError("the client speaks TLS, which this listener does not")
        raise ProtocolError(f"frame size {size} at byte 0 is outside 0..{self._request_bytes_max}")

    async def _read_frame(self) -> bytearray | None:
        """The next frame, which is not whole in the inbox yet; None at the end of the stream."""
        while self._filled - self._start < 4:
            if self._start:
                self._compact()
            received = await self._transport.receive_into(self._inbox[self._filled :])
            self._answers = 0
            if received == 0:
                if self._filled:
                    raise ProtocolError("stream ended inside a frame's size")
                return None
            self._filled += received
        frame = self._next_frame()
        if frame is not None:
            return frame
        size = self._frame_size()
        self._stats.bytes_in += size + 4
        return await self._read_large(self._start + 4, size)

    def _compact(self) -> None:
        rest = bytes(self._inbox[self._start : self._filled])
        self._inbox[: len(rest)] = rest
        self._start, self._filled = 0, len(rest)

    async def _read_large(self, start: int, size: int) -> bytearray:
        """The rest of a frame goes straight into the buffer it will be kept in."""
        have = self._filled - start
        frame = bytearray(size)
        view = memoryview(frame)
        view[:have] = self._inbox[start : self._filled]
        self._start = self._filled = 0
        while have < size:
            received = await self._transport.receive_into(view[have:], expect_data=True)
            if received == 0:
                raise ProtocolError(f"stream ended after {have} of {size} bytes of a frame")
            have += received
        view.release()
        return frame

"""Requests as frames: a size of four bytes, and that many bytes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.server.network.request_memory import RequestMemory
    from mockbroker.server.network.stats import Stats
    from mockbroker.server.network.transport import Transport

# The buffer of small frames, which an idle connection holds too. A larger frame is read into a
# buffer of its own.
BUFFER_BYTES = 16 * 1024
# The first size of that buffer. It doubles each time it is full: a client that announces a large
# frame takes memory only for the bytes that it sends.
LARGE_BUFFER_BYTES = 256 * 1024
# The first two bytes of a TLS handshake, in place of a frame's size.
TLS_CLIENT_HELLO = 0x1603


REQUEST_BYTES_MAX = "socket.request.max.bytes"
_SIZE = struct.Struct(">i").unpack_from


class InvalidReceiveError(Exception):
    """The client broke the protocol; Kafka closes such a connection without a response."""


class LimitExceededError(InvalidReceiveError):
    """The client exceeded the config `limit`."""

    def __init__(self, limit: str, reason: str) -> None:
        super().__init__(f"{reason}; the limit is {limit}")
        self.limit = limit


class FrameReader:
    """The frames of one connection, in their order."""

    __slots__ = (
        "_answers",
        "_buffer",
        "_filled",
        "_memory",
        "_request_bytes_limit",
        "_request_bytes_max",
        "_start",
        "_stats",
        "_taken",
        "_transport",
    )

    def __init__(
        self,
        transport: Transport,
        stats: Stats,
        request_bytes_max: int,
        memory: RequestMemory | None = None,
    ) -> None:
        self._transport = transport
        self._stats = stats
        self._request_bytes_max = request_bytes_max
        self._request_bytes_limit = REQUEST_BYTES_MAX
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._start = 0  # bytes [start, filled) of the buffer are still to be read
        self._filled = 0
        self._memory = memory
        self._taken = 0  # of that memory, by the frame at hand
        self._answers = 0  # since the task last waited for the client

    def _next_frame(self) -> bytearray | None:
        """A frame that is already whole in the buffer, without its size, as a copy."""
        start = self._start + 4
        if self._filled < start:
            return None
        end = start + self._frame_size()
        if end > self._filled:
            return None
        frame = bytearray(self._buffer[start:end])
        if end == self._filled:
            self._start = self._filled = 0
        else:
            self._start = end
        self._stats.bytes_in += end - start + 4
        return frame

    @property
    def _has_bytes(self) -> bool:
        """Whether bytes of the next frame are in the buffer."""
        return self._filled > self._start

    async def _receive(self) -> None:
        """Wait for more bytes of the next frame, or the end of the stream."""
        if self._start:
            self._compact()
        self._filled += await self._transport.receive_into(self._buffer[self._filled :])

    def _frame_size(self) -> int:
        """The size of the next frame. Raises InvalidReceiveError for an impossible one."""
        size: int = _SIZE(self._buffer, self._start)[0]
        if 0 <= size <= self._request_bytes_max:
            return size
        if size >> 16 == TLS_CLIENT_HELLO:
            raise InvalidReceiveError("the client speaks TLS, which this listener does not")
        reason = f"frame size {size} at byte 0 is outside 0..{self._request_bytes_max}"
        if size < 0:
            raise InvalidReceiveError(reason)
        raise LimitExceededError(self._request_bytes_limit, reason)

    async def _read_frame(self) -> bytearray | None:
        """The next frame, if it is not whole in the buffer; None at the end of the stream."""
        while self._filled - self._start < 4:
            if self._start:
                self._compact()
            received = await self._transport.receive_into(self._buffer[self._filled :])
            self._answers = 0
            if received == 0:
                if self._filled:
                    raise InvalidReceiveError("stream ended inside a frame's size")
                return None
            self._filled += received
        frame = self._next_frame()
        if frame is not None:
            return frame
        size = self._frame_size()
        self._stats.bytes_in += size + 4
        if self._memory is not None and size > BUFFER_BYTES:
            await self._memory.take(size)
            self._taken = size
        return await self._read_large(self._start + 4, size)

    def _give_memory(self) -> None:
        """The frame at hand is handled, or never will be."""
        if self._taken and self._memory is not None:
            self._memory.give(self._taken)
            self._taken = 0

    def _compact(self) -> None:
        """Move the bytes of the next frame to the start of the buffer."""
        rest = bytes(self._buffer[self._start : self._filled])
        self._buffer[: len(rest)] = rest
        self._start, self._filled = 0, len(rest)

    async def _read_large(self, start: int, size: int) -> bytearray:
        """Read the rest of a frame into a buffer that grows to its size. The log may keep it."""
        have = self._filled - start
        frame = bytearray(self._buffer[start : self._filled])
        self._start = self._filled = 0
        while have < size:
            frame += bytes(min(max(LARGE_BUFFER_BYTES - have, have), size - have))
            with memoryview(frame) as view:
                while have < len(frame):
                    received = await self._transport.receive_into(view[have:], expect_data=True)
                    if received == 0:
                        raise InvalidReceiveError(
                            f"stream ended after {have} of {size} bytes of a frame"
                        )
                    have += received
        return frame

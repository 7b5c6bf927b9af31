"""Transports: receive into a buffer, send a list of buffers, close with FIN or RST.

trio's streams have neither `recv_into` nor `sendmsg`. A broker needs both: a Produce is received
into the buffer that the log keeps, and a Fetch leaves as the stored batches, which the kernel
gathers.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from mockbroker.server.network.watched_sockets import WatchedSockets

Buffer = bytes | bytearray | memoryview

# sendmsg refuses more buffers than this at once (IOV_MAX on Linux and macOS).
IOV_MAX = 1024
# Up to this size one joined send is cheaper than a scatter list.
JOIN_BYTES_MAX = 16 * 1024


class Transport(Protocol):
    """One byte stream to one client."""

    async def receive_into(self, view: memoryview, *, expect_data: bool = False) -> int:
        """Fill a prefix of `view`; returns the number of bytes, 0 at end of stream.

        With `expect_data` it tries before it waits, for a client in the middle of a frame. Raises
        OSError if the connection broke, trio.ClosedResourceError once this side is closed.
        """
        ...

    def send(self, parts: Sequence[Buffer]) -> Sequence[Buffer]:
        """Send as many bytes as possible without waiting; returns the rest, usually empty.

        The rest must go to `send_rest` before anything else is sent. Raises OSError if the
        connection broke.
        """
        ...

    async def send_rest(self, parts: Sequence[Buffer]) -> None:
        """Send all bytes of all parts, in order. Raises OSError if the connection broke."""
        ...

    def close(self, *, reset: bool = False) -> None:
        """Close at once: with FIN, or with RST if `reset`. Idempotent."""
        ...


class SocketTransport:
    """A plain TCP socket."""

    __slots__ = ("_closed", "_socket", "_watched")

    def __init__(self, sock: socket.socket, watched: WatchedSockets | None = None) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self._closed = False
        self._watched = watched

    @property
    def socket(self) -> socket.socket:
        """The socket, for TLS on top of it."""
        return self._socket

    @property
    def descriptor(self) -> int | None:
        """As `AcceptedTransport.descriptor`."""
        return self._socket.fileno()

    def expect(self, on_readable: Callable[[], None]) -> None:
        """As `AcceptedTransport.expect`; without epoll, `on_readable` is never called."""
        if self._watched is not None:
            self._watched.expect(self._socket, on_readable)

    def expect_close(self, on_close: Callable[[], None]) -> None:
        """As `AcceptedTransport.expect_close`; without epoll, `on_close` is never called."""
        if self._watched is not None:
            self._watched.expect_close(self._socket, on_close)

    def forget(self) -> None:
        """As `AcceptedTransport.forget`."""
        if self._watched is not None:
            self._watched.forget(self._socket)

    async def receive_into(self, view: memoryview, *, expect_data: bool = False) -> int:
        sock = self._socket
        if self._closed:  # by a broker that stopped before this connection's first turn
            raise trio.ClosedResourceError
        if not expect_data:
            await trio.lowlevel.wait_readable(sock)
        while True:
            try:
                return sock.recv_into(view)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(sock)

    def send(self, parts: Sequence[Buffer]) -> Sequence[Buffer]:
        total = 0
        for part in parts:
            total += len(part)
        try:
            if total <= JOIN_BYTES_MAX:
                sent = self._socket.send(b"".join(parts))
            else:
                sent = self._socket.sendmsg(parts[:IOV_MAX])
        except BlockingIOError:
            return parts
        return () if sent == total else _after(parts, sent)

    async def send_rest(self, parts: Sequence[Buffer]) -> None:
        while parts:
            if self._closed:
                raise trio.ClosedResourceError
            await trio.lowlevel.wait_writable(self._socket)
            try:
                sent = self._socket.sendmsg(parts[:IOV_MAX])
            except BlockingIOError:
                continue
            parts = _after(parts, sent)

    def close(self, *, reset: bool = False) -> None:
        if self._closed:
            return
        self._closed = True
        self.forget()
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()


def _after(parts: Sequence[Buffer], sent: int) -> Sequence[Buffer]:
    """The parts without their first `sent` bytes."""
    first = 0
    while first < len(parts) and sent >= len(parts[first]):
        sent -= len(parts[first])
        first += 1
    if sent == 0:
        return parts[first:]
    return (memoryview(parts[first])[sent:], *parts[first + 1 :])

"""Clients that send more, or close, while their request waits.

**The next request behind a Fetch.** Responses leave in the order of the requests, so a request
behind a waiting Fetch waits for it: usually half a second in Kafka. Spark's source waits so at the
end of each micro-batch, because its ListOffsets is behind its own Fetch. Here the arrival of the
next request completes the Fetch with the available records. To the client this looks like records
that arrived in that moment.

**A client that gives up.** A connection that a rule stalls reads nothing, so it would not notice
that its client has closed.

With trio alone, each would need a second task. One epoll set, which trio watches like a socket,
needs two system calls. Without epoll (macOS), a Fetch waits as in Kafka, and a stalled connection
stays until the stall is over.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import Protocol

import trio


class _Epoll(Protocol):
    def fileno(self) -> int: ...
    def register(self, fd: int, eventmask: int) -> None: ...
    def unregister(self, fd: int) -> None: ...
    def poll(self, timeout: float) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...


class WatchedSockets:
    """The sockets of clients that are expected to send more, or to close. One for a cluster."""

    __slots__ = ("_epoll", "_watched")

    def __init__(self) -> None:
        self._epoll: _Epoll = select.epoll()
        self._watched: dict[int, tuple[socket.socket, Callable[[], None], bool]] = {}

    def expect(self, sock: socket.socket, on_readable: Callable[[], None]) -> None:
        """Call `on_readable` when the client at `sock` has sent more bytes. `forget` must
        follow.
        """
        self._watch(sock, select.EPOLLIN, on_readable, with_bytes=True)

    def expect_close(self, sock: socket.socket, on_close: Callable[[], None]) -> None:
        """Call `on_close` when the client at `sock` has closed its side, whatever bytes came
        before. `forget` must follow.
        """
        self._watch(sock, select.EPOLLRDHUP, on_close, with_bytes=False)

    def _watch(
        self, sock: socket.socket, event: int, call: Callable[[], None], *, with_bytes: bool
    ) -> None:
        fd = sock.fileno()
        if fd >= 0:
            self._watched[fd] = (sock, call, with_bytes)
            # Reported once: the bytes stay in the socket.
            self._epoll.register(fd, event | select.EPOLLONESHOT)

    def forget(self, sock: socket.socket) -> None:
        """End the watch, if there is one. It must end before the socket is closed: another one may
        have its number then.
        """
        fd = sock.fileno()
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    @staticmethod
    def possible() -> bool:
        """Whether this operating system has epoll."""
        return hasattr(select, "epoll")

    async def run(self) -> None:
        """Call the callbacks of the sockets until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for fd, _ in self._epoll.poll(0):
                watched = self._watched.get(fd)
                if watched is None:
                    continue
                sock, call, with_bytes = watched
                if not with_bytes or _has_bytes(sock):
                    call()

    def close(self) -> None:
        """Close the epoll set."""
        self._epoll.close()


def _has_bytes(sock: socket.socket) -> bool:
    """Whether there are bytes to read; False if the client has only closed its side."""
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except OSError:
        return False

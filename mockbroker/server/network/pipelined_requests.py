"""The next request of a client whose Fetch still waits for records.

Responses leave in the order of the requests, so a request behind a waiting Fetch waits for it:
usually half a second in Kafka. Spark's source waits so at the end of each micro-batch, because its
ListOffsets is behind its own Fetch. Here the arrival of the next request completes the Fetch with
the available records. To the client this looks like records that arrived in that moment.

With trio alone, each Fetch would need a second task. One epoll set, which trio watches like a
socket, needs two system calls. Without epoll (macOS), a Fetch waits as in Kafka.
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


class PipelinedRequests:
    """The sockets on which a next request is expected. One for a cluster."""

    __slots__ = ("_epoll", "_mask", "_waiting")

    def __init__(self) -> None:
        self._epoll: _Epoll = select.epoll()
        # Reported once: the bytes stay in the socket until the response is sent.
        self._mask: int = select.EPOLLIN | select.EPOLLONESHOT
        self._waiting: dict[int, tuple[socket.socket, Callable[[], None]]] = {}

    def expect(self, sock: socket.socket, on_readable: Callable[[], None]) -> None:
        """Call `on_readable` when the client at `sock` has sent more bytes. `forget` must
        follow.
        """
        fd = sock.fileno()
        if fd >= 0:
            self._waiting[fd] = (sock, on_readable)
            self._epoll.register(fd, self._mask)

    def forget(self, sock: socket.socket) -> None:
        """End `expect`, also for a closed socket."""
        fd = sock.fileno()
        if fd < 0:
            closed = [known for known, (each, _) in self._waiting.items() if each is sock]
            for each in closed:  # not from the epoll set: another socket may have the number now
                del self._waiting[each]
        elif self._waiting.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    @staticmethod
    def possible() -> bool:
        """Whether this operating system has epoll."""
        return hasattr(select, "epoll")

    async def run(self) -> None:
        """Call the callbacks of readable sockets until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for fd, _ in self._epoll.poll(0):
                waiting = self._waiting.get(fd)
                if waiting is not None and _has_bytes(waiting[0]):
                    waiting[1]()

    def close(self) -> None:
        """Close the epoll set."""
        self._epoll.close()


def _has_bytes(sock: socket.socket) -> bool:
    """Whether there are bytes to read; False if the client has only closed its side."""
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except OSError:
        return False

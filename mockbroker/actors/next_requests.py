"""Noticing that a client has sent its next request while a Fetch of it still waits for records.

Answers go out in the order of the requests, so whatever a client asks behind a waiting Fetch waits
for it. Real Kafka lets it wait, as a rule half a second; Spark's source pays that for the end of
each micro-batch, because its ListOffsets stands behind its own Fetch. Here the Fetch is answered
with what there is as soon as the next request arrives, which its client cannot tell from records
that came in that moment.

Watching a socket beside a task of trio's would take a task for each Fetch. One epoll set of our
own, which trio watches as it would a socket, takes two system calls. Where there is no epoll
(macOS), a Fetch waits as it does in Kafka.
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


class NextRequests:
    """The sockets on which a next request may come, and what to call then. One for a cluster."""

    __slots__ = ("_epoll", "_mask", "_waiting")

    def __init__(self) -> None:
        self._epoll: _Epoll = select.epoll()
        # Told once: the bytes stay in the socket until the answer is out.
        self._mask: int = select.EPOLLIN | select.EPOLLONESHOT
        self._waiting: dict[int, tuple[socket.socket, Callable[[], None]]] = {}

    def expect(self, sock: socket.socket, hurry: Callable[[], None]) -> None:
        """Call `hurry` when the client at `sock` has sent more. `forget` has to follow."""
        fd = sock.fileno()
        if fd >= 0:
            self._waiting[fd] = (sock, hurry)
            self._epoll.register(fd, self._mask)

    def forget(self, sock: socket.socket) -> None:
        """Expect nothing from `sock` any more; a socket that was closed is forgotten as well."""
        fd = sock.fileno()
        if fd < 0:
            closed = [known for known, (each, _) in self._waiting.items() if each is sock]
            for each in closed:  # its number may be another socket's by now: leave that alone
                del self._waiting[each]
        elif self._waiting.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    @staticmethod
    def possible() -> bool:
        """Whether this operating system has what it takes."""
        return hasattr(select, "epoll")

    async def run(self) -> None:
        """Call those whose sockets have something to read. Runs until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for fd, _ in self._epoll.poll(0):
                waiting = self._waiting.get(fd)
                if waiting is not None and _has_bytes(waiting[0]):
                    waiting[1]()

    def close(self) -> None:
        """Let go of the epoll set."""
        self._epoll.close()


def _has_bytes(sock: socket.socket) -> bool:
    """Whether there is something to read: not when the client has only closed its side."""
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except OSError:
        return False

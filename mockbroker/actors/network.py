"""Where the connections of a cluster come from: TCP, unless something else plays it.

A *network* lets brokers listen. A *port* is one address that a broker listens on. A *link* is the
transport of one client that came in by a port.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from typing import Protocol, TypeAlias

import trio

from mockbroker.actors.config import ServerError
from mockbroker.actors.next_requests import NextRequests
from mockbroker.actors.transport import SocketTransport, Transport

log = logging.getLogger("mockbroker")

LISTEN_BACKLOG = 1024
# How many clients are accepted before others have their turn.
ACCEPTS_PER_TURN = 64
# How long to wait before the next accept when the process has no file descriptor left.
NO_DESCRIPTOR_PAUSE_S = 0.01


class Link(Transport, Protocol):
    """The transport of an accepted client. It can also tell that the client has sent more."""

    def expect(self, hurry: Callable[[], None]) -> None:
        """Call `hurry` once when there is something to read. `forget` has to follow."""
        ...

    def forget(self) -> None:
        """Expect nothing any more, also where the link is closed by now."""
        ...


Accept: TypeAlias = "Callable[[Link, tuple[str, int]], None]"
"""Takes over an accepted client: (link, the client's host and port)."""


class Port(Protocol):
    """One address that a broker listens on, from `Network.listen` until `close`."""

    number: int

    async def accept(self, accept: Accept) -> None:
        """Call `accept` for each client that comes. Returns once the port is closed."""
        ...

    def close(self) -> None:
        """Refuse clients from now on. Idempotent."""
        ...


class Network(Protocol):
    """What brokers listen on."""

    def listen(self, host: str, port: int) -> Port:
        """Open a port, a free one for 0. Raises ServerError that names the address."""
        ...

    async def run(self) -> None:
        """Do what the links need done, until cancelled."""
        ...

    def close(self) -> None:
        """Let go of everything that all links share. Idempotent."""
        ...


class SocketNetwork:
    """TCP of this machine."""

    def __init__(self) -> None:
        self._next_requests = NextRequests() if NextRequests.possible() else None

    def listen(self, host: str, port: int) -> SocketPort:
        """As `Network.listen`."""
        return SocketPort(_listening(host, port), self._next_requests)

    async def run(self) -> None:
        """As `Network.run`."""
        if self._next_requests is not None:
            await self._next_requests.run()

    def close(self) -> None:
        """As `Network.close`."""
        if self._next_requests is not None:
            self._next_requests.close()


class SocketPort:
    """A listening socket."""

    def __init__(self, sock: socket.socket, next_requests: NextRequests | None) -> None:
        self.number: int = sock.getsockname()[1]
        self._socket = sock
        self._next_requests = next_requests
        self._scope = trio.CancelScope()

    def close(self) -> None:
        """As `Port.close`."""
        self._scope.cancel()
        self._socket.close()

    async def accept(self, accept: Accept) -> None:
        """As `Port.accept`."""
        # A broker may stop between the moment a client is seen and the moment it is accepted.
        sock = self._socket
        with self._scope:
            while sock.fileno() >= 0:
                await trio.lowlevel.wait_readable(sock)
                if self._scope.cancel_called:
                    break
                try:
                    self._accept_waiting(accept)
                except BlockingIOError:
                    continue
                except OSError as error:  # no descriptor left, or the client is gone already
                    log.warning("port %d could not accept a connection: %s", self.number, error)
                    # Real time: the run's own clock may stand still.
                    await trio.to_thread.run_sync(time.sleep, NO_DESCRIPTOR_PAUSE_S)

    def _accept_waiting(self, accept: Accept) -> None:
        """Accept the clients that wait. Raises BlockingIOError when there is none any more.

        One client for each turn of the event loop would be one for each request of all others.
        """
        for _ in range(ACCEPTS_PER_TURN):
            client, address = self._socket.accept()
            accept(SocketTransport(client, self._next_requests), address)


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ServerError naming the address when it cannot be had."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ServerError(f"cannot resolve the host {host!r}: {error}") from None
    sock = socket.socket(family, kind, proto)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind(address)
        sock.listen(LISTEN_BACKLOG)
    except OSError as error:
        sock.close()
        raise ServerError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return sock

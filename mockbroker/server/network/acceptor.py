"""Listening on the ports of brokers: TCP, or another network for a simulation.

A *listener network* opens acceptors. An *acceptor* listens on one port of a broker. A *reservation*
keeps the port of a stopped broker. An *accepted transport* is the transport of one client.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from typing import Protocol, TypeAlias

import trio

from mockbroker.server.config import ServerError
from mockbroker.server.network.pause_gate import PauseGate
from mockbroker.server.network.transport import SocketTransport, Transport
from mockbroker.server.network.watched_sockets import WatchedSockets

log = logging.getLogger("mockbroker")

LISTEN_BACKLOG = 1024
# The number of clients accepted in one turn of the event loop.
ACCEPTS_PER_TURN = 64
# The pause before the next accept if the process has no file descriptor left.
NO_DESCRIPTOR_PAUSE_S = 0.01


class AcceptedTransport(Transport, Protocol):
    """The transport of an accepted client, which also reports that the client has sent more, or
    has closed.
    """

    def expect(self, on_readable: Callable[[], None]) -> None:
        """Call `on_readable` once when there are bytes to read. `forget` must follow."""
        ...

    def expect_close(self, on_close: Callable[[], None]) -> None:
        """Call `on_close` once when the client has closed its side, whatever bytes it sent before.
        `forget` must follow.
        """
        ...

    def forget(self) -> None:
        """End `expect` or `expect_close`. `close` does so, too."""
        ...

    @property
    def descriptor(self) -> int | None:
        """The file descriptor, None where the network has none."""
        ...


Accept: TypeAlias = "Callable[[AcceptedTransport, tuple[str, int]], None]"
"""Takes over an accepted client: its transport, host and port."""


class Acceptor(Protocol):
    """Listens on one port of a broker, from `ListenerNetwork.listen` until `close`."""

    port: int

    async def accept(self, accept: Accept, gate: PauseGate) -> None:
        """Call `accept` for each client while `gate` is open. Returns once the port is closed."""
        ...

    def close(self) -> None:
        """Refuse clients from now on. Idempotent."""
        ...


class Reservation(Protocol):
    """Keeps a port for a broker that is stopped; clients are refused."""

    def close(self) -> None:
        """Release the port. Idempotent."""
        ...


class ListenerNetwork(Protocol):
    """The network that brokers listen on."""

    def listen(self, host: str, port: int) -> Acceptor:
        """Listen on a port, a free one for 0. Raises ServerError that names the address."""
        ...

    def reserve(self, host: str, port: int) -> Reservation:
        """Keep a port that was closed from other programs. Raises ServerError that names the
        address.
        """
        ...

    async def run(self) -> None:
        """Serve the accepted clients until cancelled."""
        ...

    def close(self) -> None:
        """Release the resources of all clients. Idempotent."""
        ...


class SocketNetwork:
    """TCP of this machine."""

    def __init__(self) -> None:
        self._watched = WatchedSockets() if WatchedSockets.possible() else None

    def listen(self, host: str, port: int) -> SocketAcceptor:
        """As `ListenerNetwork.listen`."""
        sock = _bound(host, port)
        sock.listen(LISTEN_BACKLOG)
        return SocketAcceptor(sock, self._watched)

    def reserve(self, host: str, port: int) -> socket.socket:
        """As `ListenerNetwork.reserve`: neither a bind to port 0 nor an outgoing connection gets
        the port of a socket that is bound and does not listen.
        """
        return _bound(host, port)

    async def run(self) -> None:
        """As `ListenerNetwork.run`."""
        if self._watched is not None:
            await self._watched.run()

    def close(self) -> None:
        """As `ListenerNetwork.close`."""
        if self._watched is not None:
            self._watched.close()


class SocketAcceptor:
    """A listening socket."""

    def __init__(self, sock: socket.socket, watched: WatchedSockets | None) -> None:
        self.port: int = sock.getsockname()[1]
        self._socket = sock
        self._watched = watched
        self._scope = trio.CancelScope()

    def close(self) -> None:
        """As `Acceptor.close`."""
        self._scope.cancel()
        self._socket.close()

    async def accept(self, accept: Accept, gate: PauseGate) -> None:
        """As `Acceptor.accept`."""
        # A broker may stop between the arrival of a client and its acceptance.
        sock = self._socket
        with self._scope:
            while sock.fileno() >= 0:
                await trio.lowlevel.wait_readable(sock)
                if gate.shut:
                    await gate.wait()
                if self._scope.cancel_called:
                    break
                try:
                    self._accept_waiting(accept, gate)
                except BlockingIOError:
                    continue
                except OSError as error:  # no descriptor left, or the client has disconnected
                    log.warning("port %d could not accept a connection: %s", self.port, error)
                    # Real time: the run's own clock may be frozen.
                    await trio.to_thread.run_sync(time.sleep, NO_DESCRIPTOR_PAUSE_S)

    def _accept_waiting(self, accept: Accept, gate: PauseGate) -> None:
        """Accept the waiting clients. Raises BlockingIOError when none is left.

        With one client per turn of the event loop, each would wait for a request of all others.
        """
        for _ in range(ACCEPTS_PER_TURN):
            client, address = self._socket.accept()
            accept(SocketTransport(client, self._watched), address)
            if gate.shut:
                break


def _bound(host: str, port: int) -> socket.socket:
    """A bound socket. Raises ServerError that names the address."""
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
    except OSError as error:
        sock.close()
        raise ServerError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return sock
